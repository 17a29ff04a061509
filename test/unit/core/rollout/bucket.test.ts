import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { armOf, bucketOf, saltsOf, thresholdOf } from '../../../../src/core/rollout/bucket.ts';
import { murmur3 } from '../../../../src/core/rollout/murmur3.ts';

const KEYS = Array.from({ length: 40_000 }, (_, index) => `user-${index}`);
const unit = (salt: string, percent: number) => ({ ...saltsOf(salt), percent });

describe('buckets', () => {
  it('a bucket is murmur3 of salt, a zero byte and key', () => {
    expect(bucketOf('feed-router/42', 'user-7')).toBe(murmur3(Buffer.from('feed-router/42\0user-7')));
  });

  it('the zero byte keeps pairs apart that read the same', () => {
    expect(bucketOf('ab', 'c')).not.toBe(bucketOf('a', 'bc'));
  });

  it.each([
    [0, 0],
    [100, 2 ** 32],
    [50, 2 ** 31],
    [5, 214_748_364],
    [99.999_999_999_999, 2 ** 32 - 1],
    [1e-12, 0],
  ])('%d % lies below %d', (percent, threshold) => {
    expect(thresholdOf(percent)).toBe(threshold);
  });

  it.each([Number.NaN, -1, 100.5, Number.POSITIVE_INFINITY])('%d is no percentage', (percent) => {
    expect(() => thresholdOf(percent)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }));
    expect(() => armOf(unit('s', percent), 'user-1')).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY' }),
    );
  });
});

describe('arms', () => {
  it.each([undefined, ''])('a key that is %o goes to stable, even at 100 %%', (key) => {
    for (const percent of [0, 5, 50, 100]) expect(armOf(unit('s', percent), key)).toBe('STABLE');
  });

  it('an arm without weight is never chosen (launchdarkly/java-server-sdk#227: a zero-weight arm is)', () => {
    expect(KEYS.filter((key) => armOf(unit('s', 0), key) === 'CANARY')).toEqual([]);
    expect(KEYS.filter((key) => armOf(unit('s', 100), key) === 'STABLE')).toEqual([]);
  });

  it.each([1, 5, 10, 25, 50, 75, 99])('%d % of the keys get the canary', (percent) => {
    const canary = KEYS.filter((key) => armOf(unit('share', percent), key) === 'CANARY').length;
    const deviation = Math.sqrt(KEYS.length * (percent / 100) * (1 - percent / 100));
    expect(Math.abs(canary - (KEYS.length * percent) / 100)).toBeLessThan(4 * deviation);
  });

  it('widening never takes a key out of the canary', () => {
    const percent = fc.oneof(
      fc.double({ min: 0, max: 100, noNaN: true }),
      fc.constantFrom(5, 10, 25, 50, 100),
    );
    fc.assert(
      fc.property(fc.string(), fc.string({ minLength: 1 }), percent, percent, (salt, key, a, b) => {
        const [narrow, wide] = a < b ? [a, b] : [b, a];
        const before = armOf(unit(salt, narrow), key);
        fc.pre(before === 'CANARY');
        expect(armOf(unit(salt, wide), key)).toBe('CANARY');
      }),
      { numRuns: 500 },
    );
  });

  it('the arms of two rollouts have nothing to do with each other (unleash-node-sdk#533: a shared hash seed skews them)', () => {
    for (const [a, b] of [
      [50, 50],
      [50, 25],
      [10, 10],
    ] as const) {
      const first = KEYS.map((key) => armOf(unit('feed-router/1', a), key) === 'CANARY');
      const second = KEYS.map((key) => armOf(unit('feed-router/2', b), key) === 'CANARY');
      expect(chiSquare(first, second)).toBeLessThan(10.83);
    }
  });

  it('inclusion says nothing about the arm: one salt for both would give all or none of the included the canary', () => {
    const { inclusionSalt, armSalt } = saltsOf('feed-router/1');
    const included = KEYS.map((key) => bucketOf(inclusionSalt, key) < thresholdOf(10));
    expect(
      chiSquare(
        included,
        KEYS.map((key) => bucketOf(armSalt, key) < thresholdOf(50)),
      ),
    ).toBeLessThan(10.83);
    expect(
      chiSquare(
        included,
        KEYS.map((key) => bucketOf(inclusionSalt, key) < thresholdOf(50)),
      ),
    ).toBeGreaterThan(1_000);
  });
});

/** χ² of a 2 × 2 table, one degree of freedom: above 10.83 once in 1 000 where the two are independent. */
function chiSquare(a: readonly boolean[], b: readonly boolean[]): number {
  const n = a.length;
  const both = a.filter((is, index) => is && b[index]).length;
  const ofA = a.filter(Boolean).length;
  const ofB = b.filter(Boolean).length;
  const determinant = both * (n - ofA - ofB + both) - (ofA - both) * (ofB - both);
  return (n * determinant ** 2) / (ofA * (n - ofA) * ofB * (n - ofB));
}
