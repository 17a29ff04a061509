import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../../../src/config/package-root.ts';

/** Runs before the program does, and plants a fault in it: in one of its timers once it listens for faults, or after so long that it never will. */
const planted = (callback: string): string =>
  `data:text/javascript,${encodeURIComponent(`
  const listens = () => process.listenerCount('uncaughtException') > 0 || performance.now() > 30_000;
  const fault = ${callback};
  const watch = setInterval(() => { if (!listens()) return; clearInterval(watch); setTimeout(fault, 100) }, 10);
`)}`;
const IN_A_TIMER = planted(`() => { throw new TypeError('planted in a timer') }`);
const IN_A_PROMISE = planted(`async () => { throw new TypeError('planted in a promise') }`);

async function run(program: string[], fault: string, environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['--import', fault, ...program], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { out, err, exitCode };
}

/** A service that waits for a broker. */
const service = (fault: string, environment: Record<string, string> = {}) =>
  run([join(packageRoot(), 'services', 'feature-extractor', 'main.ts')], fault, {
    MILLRACE_KAFKA_BROKERS: '127.0.0.1:1',
    MILLRACE_REGISTRY_URL: 'http://127.0.0.1:1',
    MILLRACE_REDIS_URL: 'redis://127.0.0.1:1',
    ...environment,
  });

describe('a fault that nobody catches', () => {
  it.each([
    ['a timer', IN_A_TIMER, 'uncaughtException'],
    ['a promise', IN_A_PROMISE, 'unhandledRejection'],
  ])('in %s ends a service with a log line that says where it was', async (where, fault, origin) => {
    const { out, err, exitCode } = await service(fault);
    const last: unknown = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({
      level: 'error',
      service: 'feature-extractor',
      origin,
      error: { type: 'TypeError', message: `planted in ${where}`, stack: expect.stringContaining('data:') },
      msg: 'a fault of this process; it ends, and what it held goes to others',
    });
    expect(err).toBe(`feature-extractor: ended by a fault of its own: planted in ${where}\n`);
    expect(exitCode).toBe(1);
  });

  it('is told where the log is switched off', async () => {
    const { out, err, exitCode } = await service(IN_A_TIMER, { MILLRACE_LOG_LEVEL: 'silent' });
    expect(out).toBe('');
    expect(err).toBe('feature-extractor: ended by a fault of its own: planted in a timer\n');
    expect(exitCode).toBe(1);
  });

  it('ends a command in words, with the stack trace where that was asked for', async () => {
    const command = [join(packageRoot(), 'src', 'cli', 'main.ts'), 'start', '--rate', '1'];
    const short = await run(command, IN_A_TIMER);
    expect(short.err).toContain('millrace: planted in a timer\nThis was not foreseen: with --verbose');
    expect(short.exitCode).toBe(1);
    const long = await run([...command, '--verbose'], IN_A_TIMER);
    expect(long.err).toMatch(/millrace: planted in a timer\nTypeError: planted in a timer\n {4}at /);
  });
});
