import { seededRandom } from '../src/core/random/seeded-random.ts';
import { armOf, bucketOf, saltsOf } from '../src/core/rollout/bucket.ts';
import { addObservation, startEvidence } from '../src/core/rollout/evidence.ts';
import { HeavyKeys } from '../src/core/rollout/heavy-keys.ts';
import { MIXED } from './rollout-statistics/population.ts';
import { Traffic } from './rollout-statistics/traffic.ts';
import type { BenchRow } from './run.ts';

const KEYS = 100_000;
/** Few enough that the texts stay in the cache, as a key that was just read does. */
const REQUESTS = 16_384;
const ROUNDS = 101;

/** What a request pays for its arm and for the count of heavy keys; what a look pays for the tests. */
export async function run(): Promise<{ rows: BenchRow[] }> {
  return { rows: timeRows() };
}

function timeRows(): BenchRow[] {
  const random = seededRandom(1).stream('times');
  const zipf = () => Math.floor(Math.exp(random.next() * Math.log(KEYS)));
  const keys = Array.from({ length: REQUESTS }, () => keyOf(zipf()));
  const unit = { ...saltsOf('feed-router/42'), percent: 5 };
  const heavy = new HeavyKeys();
  const windows = Array.from({ length: 360 }, (_, index) => index);
  const traffic = new Traffic(random, {
    rates: { errors: 0.001, deadLetters: 0, deadlineMisses: 0.003 },
    effect: {},
    crowd: MIXED,
    withoutHeaviest: true,
  });
  const observations = windows.map(() => traffic.next(5));
  return [
    nanoseconds(
      'bucket of a key of 16 characters',
      medianNs(keys, (key) => bucketOf('feed-router/42', key)),
    ),
    nanoseconds(
      'arm of a key of 16 characters, 5 %',
      medianNs(keys, (key) => armOf(unit, key).length),
    ),
    nanoseconds(
      'heavy keys, one request, Zipf',
      medianNs(keys, (key) => Number(heavy.add(key))),
    ),
    {
      metric: 'evidence, one look',
      value:
        medianNs(observations, (each) => addObservation(startEvidence({ percent: 5 }), each).windows) / 1_000,
      unit: 'µs',
    },
  ];
}

function nanoseconds(metric: string, value: number): BenchRow {
  return { metric, value, unit: 'ns', target: 100, relation: '<=' };
}

function keyOf(rank: number): string {
  // A text of its own, flat, as a decoder makes it.
  return Buffer.from(`user-${String(rank).padStart(11, '0')}`).toString('latin1');
}

function medianNs<Item>(items: readonly Item[], work: (item: Item) => number): number {
  let sink = 0;
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    for (const item of items) sink += work(item);
    return ((performance.now() - start) * 1e6) / items.length;
  });
  if (Number.isNaN(sink)) throw new RangeError('nothing was measured');
  return rounds.sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN;
}
