import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { type GeneratorOptions, generatedArrivals } from '../../../src/traffic/arrivals.ts';

const OPTIONS: GeneratorOptions = { ratePerSecond: 100, candidatesMax: 64, historyRowsMax: 4 };

function take(count: number, options: Partial<GeneratorOptions> = {}, seed = 1) {
  const arrivals = generatedArrivals({ ...OPTIONS, ...options }, seededRandom(seed).stream('arrivals'));
  return Array.from({ length: count }, () => arrivals.next().value);
}

function rateOf(arrivals: readonly { afterMs: number }[]): number {
  return (1_000 * arrivals.length) / arrivals.reduce((sum, { afterMs }) => sum + afterMs, 0);
}

describe('generated arrivals', () => {
  it('are the same for the same seed, and others for another', () => {
    expect(take(50, {}, 7)).toEqual(take(50, {}, 7));
    expect(take(50, {}, 7)).not.toEqual(take(50, {}, 8));
  });

  it('come at the mean rate, with pauses as a Poisson process has them', () => {
    const arrivals = take(20_000);
    expect(rateOf(arrivals)).toBeGreaterThan(97);
    expect(rateOf(arrivals)).toBeLessThan(103);
    const longer = arrivals.filter(({ afterMs }) => afterMs > 10).length / arrivals.length;
    expect(longer).toBeCloseTo(Math.exp(-1), 1);
  });

  it('keep the mean rate with bursts, and are denser within', () => {
    const burst = { everyMs: 1_000, lengthMs: 100, factor: 5 };
    const arrivals = take(40_000, { ratePerSecond: 1_000, burst });
    expect(rateOf(arrivals)).toBeGreaterThan(970);
    expect(rateOf(arrivals)).toBeLessThan(1_030);
    let atMs = 0;
    let inBurst = 0;
    for (const { afterMs } of arrivals) {
      atMs += afterMs;
      // The middle of each period.
      if (Math.abs((atMs % burst.everyMs) - burst.everyMs / 2) < burst.lengthMs / 2) inBurst += 1;
    }
    // A tenth of the time at five times the calm rate: 5 / 14 of all.
    expect(inBurst / arrivals.length).toBeCloseTo(5 / 14, 1);
  });

  it('have sizes within bounds, small ones more often', () => {
    const shapes = take(5_000).map(({ shape }) => shape);
    const candidates = shapes.map((shape) => shape.candidates).sort((a, b) => a - b);
    expect([candidates[0], candidates.at(-1)]).toEqual([8, 64]);
    expect(candidates[2_500]).toBeLessThan(27);
    expect(new Set(shapes.map((shape) => shape.historyRows))).toEqual(new Set([0, 1, 2, 3, 4]));
  });
});
