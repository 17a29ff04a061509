import { describe, expect, it } from 'vitest';
import { learn, slowdownOf } from '../../../../src/core/tuning/reference.ts';
import type { DomainObservation } from '../../../../src/core/tuning/tuning-observation.ts';
import type { References } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';

/** With a median of so many ms the whole way, a half of it in the kernels, and hardly a queue. */
function domain(ms: number, { spread = 2, count = 1_000 } = {}): DomainObservation {
  const summary = (p50Ms: number) => ({
    count,
    p50Ms,
    p90Ms: spread * p50Ms,
    p99Ms: 3 * spread * p50Ms,
    over: 0,
  });
  return {
    pool: 'a100',
    memory: 'hbm',
    requests: count,
    utilisation: 0.5,
    simulated: false,
    latency: { queue: summary(ms / 100), kernel: summary(ms / 2), endToEnd: summary(ms) },
  };
}

function learned(...observed: DomainObservation[]): References | undefined {
  return observed.reduce<References | undefined>(
    (known, each) => learn(known, each, DEFAULT_TUNING),
    undefined,
  );
}

describe('what is usual', () => {
  it('is the mean of the first periods, then follows slowly', () => {
    expect(learned(domain(100), domain(200))?.endToEnd).toEqual({ learned: 2, p50Ms: 150, limitMs: 300 });
    const long = Array.from({ length: 60 }, () => domain(100));
    expect(learned(...long, domain(200))?.endToEnd).toEqual({ learned: 40, p50Ms: 102.5, limitMs: 205 });
  });

  it('is not learned from few requests', () => {
    expect(learned(domain(100, { count: 199 }))).toBeUndefined();
  });

  it('has a limit with headroom where all requests take the same time, and a queue one that is worth waiting for', () => {
    expect(learned(domain(100, { spread: 1 }))).toMatchObject({
      queue: { limitMs: 25 },
      kernel: { limitMs: expect.closeTo(57.5) },
      endToEnd: { limitMs: expect.closeTo(115) },
    });
  });

  it('tells how many times longer it takes', () => {
    const usual = learned(domain(100));
    expect(slowdownOf(usual, domain(150), 'endToEnd')).toBeCloseTo(1.5);
    expect(slowdownOf(usual, domain(100, { spread: 4 }), 'kernel')).toBeCloseTo(1.5);
    expect(slowdownOf(usual, undefined, 'kernel')).toBe(1);
    expect(slowdownOf(undefined, domain(150), 'kernel')).toBe(1);
    expect(slowdownOf(usual, domain(150, { count: 0 }), 'kernel')).toBe(1);
  });
});
