import { parseArgs } from 'node:util';
import { median } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

const STRETCH_MS = 1_000;
/** Parsed documents that stay alive: some 100 MB, more than a core's own caches and less than a heap's limit. */
const KEPT = 20_000;
const SPINS = 100_000;
const DOCUMENTS = 20;

/**
 * How steady the machine itself is: a loop of arithmetic, and one that parses and writes JSON beside a hundred megabytes that stay alive, both
 * counted second by second. Where the first is steady and the second is not, it is the memory that others use, and whatever handles many
 * objects (a pipeline more than a relay) varies with it from second to second, alone on the machine or not.
 *
 *   npm run bench -- machine --seconds 20
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({
    args: [...options],
    options: { seconds: { type: 'string', default: '20' } },
  });
  const seconds = Number(values.seconds);
  return { rows: [...rowsOf('arithmetic', seconds, spin), ...rowsOf('memory', seconds, documents())] };
}

function rowsOf(kind: string, seconds: number, work: () => number): BenchRow[] {
  // Whatever started this benchmark may not be done yet, and nothing is compiled.
  rate(work);
  rate(work);
  const rates = Array.from({ length: seconds }, () => rate(work));
  const middle = median(rates);
  const row = (metric: string, value: number, unit: string): BenchRow => ({
    metric: `${kind}, ${metric}`,
    value,
    unit,
  });
  return [
    row('rounds a second, median', middle, '1/s'),
    row('slowest second / median', Math.min(...rates) / middle, '×'),
    row('fastest second / median', Math.max(...rates) / middle, '×'),
  ];
}

function rate(work: () => number): number {
  const startedMs = performance.now();
  let rounds = 0;
  let sum = 0;
  while (performance.now() - startedMs < STRETCH_MS) {
    sum += work();
    rounds += 1;
  }
  if (Number.isNaN(sum)) throw new Error('the work gave no number');
  return (rounds * 1_000) / (performance.now() - startedMs);
}

function spin(): number {
  let x = 1;
  for (let i = 0; i < SPINS; i += 1) x = (Math.imul(x, 31) + i) | 0;
  return x;
}

function documents(): () => number {
  const row = (n: number) => ({ name: `n${n}`, value: n * 1.5, tags: ['x', 'y', String(n)] });
  const text = JSON.stringify({ id: 'document', rows: Array.from({ length: 20 }, (_, n) => row(n)) });
  const kept: unknown[] = [];
  let turn = 0;
  return () => {
    let length = 0;
    for (let n = 0; n < DOCUMENTS; n += 1) {
      const document: unknown = JSON.parse(text);
      kept[turn++ % KEPT] = document;
      length += JSON.stringify(document).length;
    }
    return length;
  };
}
