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
  it('has percentiles within their error, and none that fewer than ten samples lie beyond', () => {
    const { p50Ms, p90Ms, p99Ms, p999Ms, ...rest } = measured(
      Array.from({ length: 1_000 }, (_, n) => n + 1),
    ).latency();
    expect(rest).toEqual({ samples: 1_000, relativeError: 0.01, maxMs: 1_000 });
    expect(Math.abs((p50Ms ?? 0) / 500 - 1)).toBeLessThan(0.011);
    expect(Math.abs((p90Ms ?? 0) / 900 - 1)).toBeLessThan(0.011);
    expect(Math.abs((p99Ms ?? 0) / 990 - 1)).toBeLessThan(0.011);
    expect(p999Ms).toBeNull();
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
