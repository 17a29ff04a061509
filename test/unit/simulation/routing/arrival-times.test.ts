import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { arrivalTimes } from '../../../../src/simulation/routing/arrival-times.ts';
import type { Arrivals } from '../../../../src/simulation/routing/scenario.ts';

const RATE = 2;
const ARRIVALS = 200_000;
const BURSTS = { kind: 'bursts', factor: 4, onMs: 5, offMs: 20 } as const;

function timesOf(arrivals: Arrivals): Float64Array {
  const next = arrivalTimes(arrivals, RATE, seededRandom(1).stream('arrivals'));
  let atMs = 0;
  return Float64Array.from({ length: ARRIVALS }, () => {
    atMs = next(atMs);
    return atMs;
  });
}

/** Variance of the arrivals in windows over their mean: 1 for Poisson. */
function dispersion(times: Float64Array, windowMs: number): number {
  const counts = new Float64Array(Math.floor((times.at(-1) ?? 0) / windowMs));
  for (const atMs of times) {
    const window = Math.floor(atMs / windowMs);
    counts[window] = (counts[window] ?? 0) + 1;
  }
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / counts.length / mean;
}

describe('arrivalTimes', () => {
  it.each<[Arrivals]>([[{ kind: 'poisson' }], [BURSTS]])('has the rate that is asked for: %j', (arrivals) => {
    const times = timesOf(arrivals);
    expect(ARRIVALS / (times.at(-1) ?? 1) / RATE).toBeCloseTo(1, 1.3);
    for (let n = 1; n < 1_000; n++) expect(times[n]).toBeGreaterThan(times[n - 1] ?? 0);
  });

  it('is as even as Poisson, or as uneven as a Poisson process of two states', () => {
    expect(dispersion(timesOf({ kind: 'poisson' }), 10)).toBeCloseTo(1, 1);
    // Fischer and Meier-Hellstern 1993: 1 + 2 (r1 − r2)² s1 s2 / ((s1 + s2)² mean (s1 + s2)), less what a short window does not see.
    const [s1, s2] = [1 / BURSTS.onMs, 1 / BURSTS.offMs];
    const calm = (RATE * 25) / (4 * 5 + 20);
    const most = 1 + (2 * (3 * calm) ** 2 * s1 * s2) / ((s1 + s2) ** 3 * RATE);
    const windowMs = 400;
    const seen = 1 - (1 - Math.exp(-(s1 + s2) * windowMs)) / ((s1 + s2) * windowMs);
    expect(dispersion(timesOf(BURSTS), windowMs) / (1 + (most - 1) * seen)).toBeCloseTo(1, 0.7);
  });
});
