import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../../../src/config/package-root.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';

const LINE_BYTES = 1_000;
const TELEMETRY = join(packageRoot(), 'src', 'adapters', 'prometheus', 'telemetry.ts');

/** Logs until it has done so `lines` times, 20 ms apart, and ends by itself. */
const program = (lines: number): string => `
  import { prometheusTelemetry } from ${JSON.stringify(TELEMETRY)};
  const { logger } = prometheusTelemetry({ service: 'router', level: 'info' });
  for (let line = 0; line < ${lines}; line += 1) {
    logger.info({ filler: 'x'.repeat(${LINE_BYTES}) }, 'line ' + line);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  process.exit(7);
`;

async function run(
  lines: number,
  out: number,
  ulimit = 'unlimited',
): Promise<{ err: string; exitCode: unknown }> {
  const args = ['--input-type=module', '--eval', program(lines)];
  const child = spawn('sh', ['-c', `ulimit -f ${ulimit}; exec "$@"`, 'sh', process.execPath, ...args], {
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', out, 'pipe'],
  });
  if (child.stderr === null) throw new Error('no standard error');
  const [err, [exitCode]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { err, exitCode };
}

describe('the log of a process', () => {
  it('costs nothing but its lines where the disk is full: the process goes on, says so once, and ends as it would', async () => {
    const full = openSync('/dev/full', 'w');
    const { err, exitCode } = await run(5, full);
    closeSync(full);
    expect(err).toBe(
      'router: the log cannot be written: ENOSPC: no space left on device, write; this process goes on\n',
    );
    expect(exitCode).toBe(7);
  });

  it('says whether an exit would have to wait: where a pipe is held and not read, it would, for ever', async () => {
    const place = temporaryFolder();
    const fifo = place.path('fifo');
    execFileSync('mkfifo', [fifo]);
    // Held open for reading as well as for writing, and never read.
    const held = openSync(fifo, 'r+');
    const script = place.write(
      'log.ts',
      `
      import { prometheusTelemetry } from ${JSON.stringify(TELEMETRY)};
      const { logger, logWritten } = prometheusTelemetry({ service: 'router', level: 'info' });
      process.stderr.write(String(await logWritten(5_000)) + ' ');
      logger.info({}, 'short');
      process.stderr.write(String(await logWritten(5_000)) + ' ');
      for (let line = 0; line < 50; line += 1) logger.info({ filler: 'x'.repeat(8_000) }, 'long');
      process.stderr.write(String(await logWritten(200)));
      process.kill(process.pid, 'SIGKILL');
      `,
    );
    const child = spawn(process.execPath, [script], { stdio: ['ignore', held, 'pipe'] });
    if (child.stderr === null) throw new Error('no standard error');
    const [err] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    closeSync(held);
    expect(err).toBe('true true false');
  });

  it('is whole as far as the file may grow', async () => {
    const place = temporaryFolder();
    const file = openSync(place.path('log'), 'w');
    const { err, exitCode } = await run(20, file, '8');
    closeSync(file);
    expect(err).toMatch(/^router: the log cannot be written: EFBIG.*\n$/);
    expect(exitCode).toBe(7);
    expect(statSync(place.path('log')).size).toBe(8 * 512);
    const [first] = readFileSync(place.path('log'), 'utf8').split('\n');
    expect(JSON.parse(first ?? '')).toMatchObject({ service: 'router', msg: 'line 0' });
  });
});
