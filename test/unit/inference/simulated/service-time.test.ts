import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { PROFILES, serviceProfile } from '../../../../src/inference/simulated/profiles.ts';
import { jitterFactor, meanServiceMs } from '../../../../src/inference/simulated/service-time.ts';

const a100 = serviceProfile('gpu-a100');
const batch = { requests: 1, candidates: 256, kernel: 'dense', memory: 'hbm', density: 1 };

describe('profiles', () => {
  test.each(Object.keys(PROFILES))('%s names itself and has a dense kernel', (accelerator) => {
    const profile = serviceProfile(accelerator);
    expect(profile.accelerator).toBe(accelerator);
    expect(profile.kernels).toHaveProperty('dense');
    expect(Object.keys(profile.memories).length).toBeGreaterThan(0);
  });

  test.each(['gpu-h100', 'toString'])('there is none of %s', (accelerator) => {
    expect(() => serviceProfile(accelerator)).toThrowError(
      expect.objectContaining({ code: 'INVALID_CONFIG', message: expect.stringContaining('gpu-a100') }),
    );
  });

  test('keep the published ratios', () => {
    const dense = meanServiceMs(a100, batch);
    expect(dense).toBeCloseTo(1.2);
    expect(meanServiceMs(a100, { ...batch, kernel: 'sparse', density: 0.05 })).toBeCloseTo(0.9);
    expect(meanServiceMs(a100, { ...batch, kernel: 'sparse', density: 0.3 })).toBeCloseTo(dense);
    expect(meanServiceMs(a100, { ...batch, kernel: 'sparse' })).toBeGreaterThan(dense);
    expect(dense - meanServiceMs(a100, { ...batch, kernel: 'bias-fused' })).toBeCloseTo(0.04, 2);
    expect(meanServiceMs(a100, { ...batch, memory: 'l2' })).toBeCloseTo(dense * 0.82);
    expect(meanServiceMs(serviceProfile('gpu-v100'), batch)).toBeGreaterThan(dense);
  });
});

describe('service time', () => {
  test('is C_R per request and C_C per candidate beside the launch', () => {
    const { launchMs, requestMs, candidateMs } = a100;
    expect(meanServiceMs(a100, { ...batch, requests: 16, candidates: 1000 })).toBeCloseTo(
      launchMs + 16 * requestMs + 1000 * candidateMs,
    );
  });

  test.each([{ kernel: 'quantum' }, { memory: 'tape' }, { kernel: 'toString' }, { memory: 'toString' }])(
    'is unknown for %o',
    (change) => {
      expect(() => meanServiceMs(a100, { ...batch, ...change })).toThrowError(RangeError);
    },
  );
});

describe('jitter', () => {
  test('has mean 1 and the spread that it is told', () => {
    const random = seededRandom(5).stream('jitter');
    const factors = Array.from({ length: 20_000 }, () => jitterFactor(0.3, random));
    const mean = factors.reduce((sum, factor) => sum + factor, 0) / factors.length;
    const logs = factors.map(Math.log);
    const logMean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    const logVariance = logs.reduce((sum, log) => sum + (log - logMean) ** 2, 0) / logs.length;
    expect(mean).toBeCloseTo(1, 1);
    expect(Math.sqrt(logVariance)).toBeCloseTo(0.3, 1);
  });

  test('is a positive number for any draws', () => {
    const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(draw, draw, (first, second) => {
        const draws = [first, second];
        const factor = jitterFactor(0.2, { next: () => draws.shift() ?? 0, below: () => 0 });
        expect(factor).toBeGreaterThan(0);
        expect(factor).toBeLessThan(Number.POSITIVE_INFINITY);
      }),
    );
  });

  test('is nothing where there is no spread', () => {
    expect(jitterFactor(0, seededRandom(1).stream('jitter'))).toBe(1);
  });
});
