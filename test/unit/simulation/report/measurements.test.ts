import { describe, expect, it } from 'vitest';
import { Measurements } from '../../../../src/simulation/report/measurements.ts';

function measured(latenciesMs: readonly number[]): Measurements {
  const measurements = new Measurements(100);
  for (const latencyMs of latenciesMs) {
    measurements.arrived();
    measurements.answered({ outcome: 'scored', latencyMs, leaf: 'rest' });
  }
  return measurements;
}

describe('what is measured of a run', () => {
  it('has exact percentiles, and none that fewer than ten samples lie beyond', () => {
    // Shuffled: 7 has no factor with 1 000. More than the samples have room for at first.
    const latenciesMs = Array.from({ length: 3_000 }, (_, n) => ((n * 7) % 3_000) + 1);
    expect(measured(latenciesMs).latency()).toEqual({
      samples: 3_000,
      p50Ms: 1_500,
      p90Ms: 2_700,
      p99Ms: 2_970,
      p999Ms: null,
      maxMs: 3_000,
    });
    expect(measured([1, 2, 3]).latency()).toMatchObject({ p50Ms: null, maxMs: 3 });
    expect(measured([]).latency()).toMatchObject({ p50Ms: null, maxMs: null });
  });

  it('counts each step for itself, what is in flight at its end, and no latency of what was not scored', () => {
    const measurements = measured([5]);
    measurements.arrived();
    measurements.stepEnded();
    measurements.answered({ outcome: 'expired', latencyMs: 900, leaf: undefined });
    measurements.stepEnded();
    expect(measurements.series()).toMatchObject({
      arrivals: [2, 0],
      inFlight: [1, 0],
      outcomes: { scored: [1, 0], expired: [0, 1] },
      p99Ms: [expect.closeTo(5, 0), null],
    });
    expect(measurements.latency()).toMatchObject({ samples: 1, maxMs: 5 });
    expect(measurements.leaves()).toEqual([{ leaf: 'rest', requests: 1, share: 1 }]);
  });
});
