import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { keyGroupOf } from '../../src/core/scores/key-group.ts';
import { HeadScores } from '../../src/stages/accelerator-worker/head-scores.ts';
import type { BenchRow } from '../run.ts';

const HEADS = 3;
const CANDIDATES = 100;
const REQUESTS_PER_WINDOW = 1_000;
const WINDOWS = 200;

/** What a request of 100 candidates and 3 heads costs a worker, and what a window of 1 000 such requests weighs. */
export function costRows(): BenchRow[] {
  measure();
  const { allNs, sampleNs, closeNs, bytes } = measure();
  const requests = WINDOWS * REQUESTS_PER_WINDOW;
  const row = (metric: string, value: number, unit: string): BenchRow => ({ metric, value, unit });
  return [
    row('worker: count, mean and equal bins of all scores, per request', allNs / requests, 'ns'),
    row('worker: sample one score per head, per request', sampleNs / requests, 'ns'),
    row('worker: close a window of 1000 requests, per request', closeNs / requests, 'ns'),
    row('histograms of one head in a window of 1000 requests', bytes / WINDOWS / HEADS, 'bytes'),
  ];
}

function measure() {
  const random = seededRandom(1).stream('scores');
  const scores = Array.from({ length: 64 }, () =>
    Float32Array.from({ length: CANDIDATES }, () => Math.exp(-4 + 2.4 * (random.next() + random.next() - 1))),
  );
  const keys = Array.from({ length: REQUESTS_PER_WINDOW }, (_, index) => `user-${index * 7_919}`);
  const spent = { allNs: 0, sampleNs: 0, closeNs: 0, bytes: 0 };
  const timed = (of: 'allNs' | 'sampleNs' | 'closeNs', work: () => void): void => {
    const begun = process.hrtime.bigint();
    work();
    spent[of] += Number(process.hrtime.bigint() - begun);
  };
  for (let window = 0; window < WINDOWS; window++) {
    const heads = Array.from({ length: HEADS }, () => new HeadScores());
    timed('allNs', () => {
      for (let i = 0; i < REQUESTS_PER_WINDOW; i++)
        for (const head of heads) head.addAll(scores[i % 64] ?? new Float32Array(0));
    });
    timed('sampleNs', () => {
      for (let i = 0; i < REQUESTS_PER_WINDOW; i++) {
        const drawn = Math.floor(random.next() * CANDIDATES);
        const group = keyGroupOf(keys[i] ?? '');
        for (const head of heads) head.sample(group, scores[i % 64]?.[drawn] ?? 0);
      }
    });
    timed('closeNs', () => {
      for (const head of heads)
        for (const { histogram } of head.toWindow('ctr').samples) spent.bytes += histogram.length;
    });
  }
  return spent;
}
