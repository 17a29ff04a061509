import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { commandLineOf } from '../../../src/local-stack/process-identity.ts';

/** A process that does nothing, until the test is over. */
export async function startProcess(): Promise<{
  pid: number;
  exited: Promise<unknown>;
  commandLine: string;
}> {
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
  await once(child, 'spawn');
  onTestFinished(() => void child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  return { pid, exited: once(child, 'exit'), commandLine: (await commandLineOf(pid)) ?? '' };
}
