import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { busyThreads, registryProcess, registryThreads } from '../registry-threads.ts';

const idle = `"executor-thread-1" #26 daemon
\tat org.jboss.threads.EnhancedQueueExecutor$PoolThreadNode.park(EnhancedQueueExecutor.java:2434)`;
const busy = `"executor-thread-2" #27 daemon
\tat org.h2.mvstore.MVStore.commit(MVStore.java:1)`;
const dump = (...threads: string[]) =>
  ['Full thread dump OpenJDK', ...threads, 'JNI global refs: 41'].join('\n\n');

/** Writes its threads into its log when it is told to, as a JVM does. */
const JVM = `process.on('SIGQUIT', () => console.log(process.argv[1])); setInterval(() => undefined, 1000); console.log('up\\n');`;

async function startJvm(threads: string): Promise<Record<string, string>> {
  const dir = await mkdtemp(join(tmpdir(), 'millrace-threads-'));
  const log = await open(join(dir, 'registry.log'), 'a');
  const child = spawn(process.execPath, ['-e', JVM, threads], { stdio: ['ignore', log.fd, 'ignore'] });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await log.close();
    await rm(dir, { recursive: true });
  });
  while ((await log.stat()).size === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  return { TEST_REGISTRY_PID: String(child.pid), TEST_REGISTRY_LOG: join(dir, 'registry.log') };
}

describe('what a silent registry does', () => {
  it('is told by the threads that are not idle', async () => {
    const environment = await startJvm(dump(idle, busy));
    const told = await registryThreads(environment);
    expect(told).toContain('MVStore.commit');
    expect(told).not.toContain('PoolThreadNode');
  });

  it.each([
    { what: 'nothing', text: dump(idle), told: /all threads of the registry are idle/ },
    { what: 'no dump', text: 'GET /subjects', told: /did not tell/ },
    { what: 'work', text: dump(idle, busy), told: /what the registry does:\n"executor-thread-2"/ },
  ])('is told: $what', ({ text, told }) => {
    expect(busyThreads(text)).toMatch(told);
  });

  it('cannot be told where its process is gone, or never was ours', async () => {
    expect(await registryThreads({})).toMatch(/no process of the tests/);
    const gone = { TEST_REGISTRY_PID: '2147483646', TEST_REGISTRY_LOG: '/no/such/log' };
    expect(await registryThreads(gone)).toMatch(/cannot be seen/);
  });

  it('is asked of the stack’s own process only', () => {
    expect(registryProcess({ pids: {}, dir: undefined })).toEqual({});
    expect(registryProcess({ pids: { registry: 7 }, dir: '/stack' })).toEqual({
      TEST_REGISTRY_PID: '7',
      TEST_REGISTRY_LOG: '/stack/registry/registry.log',
    });
  });
});
