import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BenchRow } from './run.ts';

/** How long a person waits behind `npm start` until scored results stand on the screen. `--runs` of it, one after another; needs util-linux's `script`. */

const USAGE = { runs: { type: 'string', default: '5' } } as const;
const DURATION = '4s';
/** The line of results that the terminal shows, and what the pipeline had scored by then. */
const SCORED = /scored ([1-9]\d*)/;

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const seconds: number[] = [];
  for (let n = 0; n < Number(values.runs); n += 1) seconds.push(await untilScored());
  seconds.sort((a, b) => a - b);
  const what = 'npm start → scored results on the screen';
  return {
    rows: [
      {
        metric: `${what}, median of ${seconds.length}`,
        value: seconds[seconds.length >> 1] ?? NaN,
        unit: 's',
      },
      {
        metric: `${what}, worst`,
        value: seconds.at(-1) ?? Number.NaN,
        unit: 's',
        target: 10,
        relation: '<=',
      },
    ],
  };
}

/** Seconds from the command to the first screen that shows scored requests. */
function untilScored(): Promise<number> {
  const startedMs = performance.now();
  // On a terminal of its own: elsewhere there is no screen that is painted anew.
  const child = spawn('script', ['-qec', `npm start -- --duration ${DURATION}`, '/dev/null'], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    let shown = '';
    let seconds: number | undefined;
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      if (SCORED.test(shown)) seconds ??= (performance.now() - startedMs) / 1_000;
    });
    child.once('error', reject);
    child.once('exit', () => {
      if (seconds === undefined) reject(new Error('nothing was scored before the run ended'));
      else resolve(seconds);
    });
  });
}

if (import.meta.main) {
  const { rows } = await run(process.argv.slice(2));
  for (const { metric, value, unit } of rows) console.log(`${metric}: ${value.toPrecision(3)} ${unit}`);
}
