import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const STOP_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 50;

/** A process that can be told from a later one with the same pid. */
export interface ProcessIdentity {
  name: string;
  pid: number;
  commandLine: string;
}

/** The command line of a running process, its words separated by blanks; undefined if there is no such process. */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  const words =
    process.platform === 'linux'
      ? readFile(`/proc/${pid}/cmdline`, 'utf8').then((text) => text.replaceAll('\0', ' '))
      : run('ps', ['-ww', '-o', 'args=', '-p', String(pid)]).then(({ stdout }) => stdout);
  const text = await words.catch(() => '');
  return text.trim() === '' ? undefined : text.trim(); // an ended process that nobody waited for has no words
}

/** Whether this very process is still running. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await commandLineOf(identity.pid)) === identity.commandLine;
}

/** SIGTERM, SIGKILL after 10 s; returns false, and touches nothing, where the pid is gone or another's by now. */
export async function endProcess(identity: ProcessIdentity): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  process.kill(identity.pid, 'SIGTERM');
  const endMs = performance.now() + STOP_TIMEOUT_MS;
  while (await isAlive(identity)) {
    if (performance.now() > endMs) process.kill(identity.pid, 'SIGKILL');
    await sleep(POLL_INTERVAL_MS);
  }
  return true;
}
