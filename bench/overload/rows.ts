import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { BenchRow } from '../run.ts';
import { type Interval, intervalOf } from './interval.ts';

/** A mean with its target, and the half-width of its 95 % interval. */
export function interval(
  metric: string,
  unit: string,
  values: readonly number[],
  least?: number,
  peer?: string,
): BenchRow[] {
  const { mean, halfWidth }: Interval = intervalOf(values);
  const meanRow = row(metric, mean, unit, peer);
  return [
    least === undefined ? meanRow : { ...meanRow, target: least, relation: '>=' },
    row(`${metric}, ± at 95 %`, halfWidth, unit, peer),
  ];
}

export function row(metric: string, value: number, unit = '', peer?: string): BenchRow {
  return peer === undefined ? { metric, value, unit } : { metric, value, unit, peer };
}

export function positive(name: string, text: string, least = 1): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least)
    throw new RangeError(`--${name} is a whole number from ${least} on, not ${text}`);
  return value;
}

/** The seeds of the runs, from one. */
export function seedsOf(seed: string, count: string): number[] {
  const seeds = seededRandom(Number(seed)).stream('seeds');
  return Array.from({ length: positive('seeds', count) }, () => seeds.below(2 ** 32));
}
