import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stack } from '../src/local-stack/stack.ts';

/** Where tests find the registry's process; not MILLRACE_…, which services would take for a setting. */
const PID = 'TEST_REGISTRY_PID';
const LOG = 'TEST_REGISTRY_LOG';
const DUMP_BEGINS = 'Full thread dump';
const DUMP_MS = 10_000;
const THREADS = /^"(executor-thread|vert\.x|agroal|MVStore|main)/;
const IDLE =
  /BackgroundWriterThread\.run|PoolThreadNode\.park|EPoll\.wait|getTask|ApplicationLifecycleManager\.run/;

/** The environment that lets tests of a stack of ours ask its registry what it does. */
export function registryProcess({ pids, dir }: Pick<Stack, 'pids' | 'dir'>): Record<string, string> {
  const pid = pids['registry'];
  return pid === undefined || dir === undefined
    ? {}
    : { [PID]: String(pid), [LOG]: join(dir, 'registry', 'registry.log') };
}

/**
 * What each thread of the local stack's registry that is not idle does now, for the message of a test that it kept waiting; where the
 * registry is not a process of ours, that. Never rejects.
 */
export async function registryThreads(environment: NodeJS.ProcessEnv = process.env): Promise<string> {
  const { [PID]: pid, [LOG]: log } = environment;
  if (pid === undefined || log === undefined) return 'the registry is no process of the tests';
  try {
    const before = (await readFile(log, 'utf8')).length;
    process.kill(Number(pid), 'SIGQUIT'); // a JVM writes its threads into its log, and goes on
    return busyThreads(await nextDump(log, before));
  } catch (error) {
    return `the registry's threads cannot be seen: ${String(error)}`;
  }
}

async function nextDump(log: string, from: number): Promise<string> {
  const endMs = performance.now() + DUMP_MS;
  for (;;) {
    const written = (await readFile(log, 'utf8')).slice(from);
    const dump = written.slice(written.indexOf(DUMP_BEGINS));
    const isWhole = written.includes(DUMP_BEGINS) && dump.includes('JNI global ref');
    if (isWhole || performance.now() > endMs) return written;
    await sleep(100);
  }
}

export function busyThreads(dump: string): string {
  const threads = dump.split(/\n\s*\n/).filter((thread) => THREADS.test(thread) && !IDLE.test(thread));
  if (threads.length > 0) return `what the registry does:\n${threads.join('\n\n')}`;
  return dump.includes(DUMP_BEGINS)
    ? 'all threads of the registry are idle: it does not know of a request'
    : 'the registry did not tell what its threads do';
}
