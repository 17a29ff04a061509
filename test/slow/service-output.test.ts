import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../../src/config/package-root.ts';
import { freePort } from '../../src/local-stack/free-port.ts';
import { eventually } from './real-pipeline.ts';

/** A service whose standard output, or both, lead where nothing can be written; until it answers. */
async function service(out: number | 'ignore', err: number | 'ignore') {
  const port = await freePort();
  const env = {
    ...process.env,
    MILLRACE_HTTP_PORT: String(port),
    MILLRACE_PREFIX: `out${process.pid}-${port}`,
  };
  execFileSync(process.execPath, [join(packageRoot(), 'bin/millrace.js'), 'topics', 'apply'], { env });
  const child = spawn(process.execPath, [join(packageRoot(), 'services/policy-controller/main.ts')], {
    stdio: ['ignore', out, err],
    env,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const answers = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined))?.ok === true;
  await eventually(async () => (await answers()) || child.exitCode !== null, 'it answers, or has ended');
  return { child, answers };
}

describe('a service', () => {
  it.each([0, 50, 150, 400])(
    'ends in order where it is asked to %d ms after it began to start',
    async (delayMs) => {
      const { child } = await service('ignore', 'ignore');
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
    },
  );

  it('goes on where both of its outputs are on a full disk, and ends as any other', async () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const { child, answers } = await service(full, full);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(await answers()).toBe(true);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('ends where somebody holds the pipe of its log and reads nothing', async () => {
    const fifo = join(mkdtempSync(join(tmpdir(), 'millrace-fifo-')), 'log');
    execFileSync('mkfifo', [fifo]);
    const held = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(held));
    expect(() => {
      for (;;) writeSync(held, 'x'.repeat(4_096));
    }).toThrow('EAGAIN');
    const { child, answers } = await service(openSync(fifo, constants.O_WRONLY), 'ignore');
    expect(await answers()).toBe(true);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  });
});
