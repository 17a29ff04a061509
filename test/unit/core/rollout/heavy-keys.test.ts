import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createGenerator } from '../../../../src/core/random/generator.ts';
import { bucketOf } from '../../../../src/core/rollout/bucket.ts';
import { HeavyKeys } from '../../../../src/core/rollout/heavy-keys.ts';
import { SlotIndex } from '../../../../src/core/rollout/slot-index.ts';

describe('heavy keys', () => {
  it('bounds every count from both sides, in order, and misses no key that is heavier than 1/capacity', () => {
    const keys = fc.array(
      fc.integer({ min: 0, max: 30 }).map((n) => `k${Math.floor(n * n * 0.05)}`),
      {
        maxLength: 400,
      },
    );
    fc.assert(
      fc.property(keys, fc.integer({ min: 3, max: 12 }), (stream, capacity) => {
        const heavy = new HeavyKeys({ heaviest: capacity - 1, capacity });
        const exact = new Map<number, number>();
        for (const key of stream) {
          heavy.add(key);
          exact.set(bucketOf('', key), (exact.get(bucketOf('', key)) ?? 0) + 1);
        }
        const listed = heavy.heaviest();
        for (const { hash, count, error } of listed) {
          expect(count).toBeGreaterThanOrEqual(exact.get(hash) ?? 0);
          expect(count - error).toBeLessThanOrEqual(exact.get(hash) ?? 0);
          expect(exact.get(hash) ?? 0).toBeGreaterThan(stream.length / capacity);
        }
        expect(listed.map(({ count }) => count)).toEqual(
          listed.map(({ count }) => count).sort((a, b) => b - a),
        );
        // Whoever has more than twice 1/capacity is surely told apart: its error is 1/capacity of the stream at most.
        for (const [hash, count] of exact)
          if (count > (2 * stream.length) / capacity) expect(listed.map((each) => each.hash)).toContain(hash);
      }),
      { numRuns: 500 },
    );
  });

  it('tells the 50 heaviest of Zipf traffic from the rest', () => {
    const random = createGenerator(5, 'zipf');
    const heavy = new HeavyKeys();
    const draw = () => Math.floor(Math.exp(random.next() * Math.log(100_000)));
    for (let i = 0; i < 200_000; i++) heavy.add(`user-${draw()}`);
    const flagged = (rank: number) => heavy.add(`user-${rank}`);
    expect(Array.from({ length: 35 }, (_, index) => flagged(index + 1))).not.toContain(false);
    expect(Array.from({ length: 500 }, (_, index) => flagged(index + 70))).not.toContain(true);
    expect(heavy.heaviest()).toHaveLength(50);
  });

  it('nobody is heavy where everybody is alike', () => {
    const heavy = new HeavyKeys({ heaviest: 10, capacity: 100 });
    for (let i = 0; i < 20_000; i++) heavy.add(`user-${i % 1_000}`);
    expect(heavy.heaviest()).toEqual([]);
  });

  it('forgets a key that was heavy long ago', () => {
    const heavy = new HeavyKeys({ heaviest: 2, capacity: 8 });
    for (let i = 0; i < 60_000; i++) heavy.add('old');
    for (let i = 0; i < 40_000; i++) heavy.add(i % 2 === 0 ? 'new' : `light-${i % 5}`);
    expect(heavy.heaviest()[0]?.hash).toBe(bucketOf('', 'new'));
    expect(heavy.add('old')).toBe(false);
  });

  it('keeps its counts right when new keys come after a halving', () => {
    const heavy = new HeavyKeys({ heaviest: 3, capacity: 8 });
    for (const once of ['a', 'b']) heavy.add(once);
    for (let i = 0; i < 8_200; i++) heavy.add('c');
    for (let i = 0; i < 3_000; i++) heavy.add('d');
    for (let i = 0; i < 1_000; i++) for (const key of ['a', 'e']) heavy.add(key);
    const order = heavy.heaviest().map(({ hash }) => hash);
    expect(order.slice(0, 2)).toEqual([bucketOf('', 'c'), bucketOf('', 'd')]);
  });

  it('is the same for the same stream', () => {
    const run = () => {
      const heavy = new HeavyKeys({ heaviest: 5, capacity: 20 });
      return Array.from({ length: 5_000 }, (_, i) => heavy.add(`k${(i * i) % 97}`));
    };
    expect(run()).toEqual(run());
  });

  it.each([
    { heaviest: 0, capacity: 10 },
    { heaviest: 10, capacity: 10 },
    { heaviest: 1.5, capacity: 10 },
    { heaviest: 1, capacity: 2 ** 21 },
  ])('refuses %o', (options) => {
    expect(() => new HeavyKeys(options)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
  });
});

it('the index finds what a map would, also after replacements and collisions', () => {
  // Few different low bits: almost every hash collides.
  const hash = fc
    .integer({ min: 0, max: 3 })
    .chain((low) => fc.integer({ min: 0, max: 20 }).map((high) => (high << 8) | low));
  fc.assert(
    fc.property(fc.array(hash, { maxLength: 100 }), (hashes) => {
      const index = new SlotIndex(4);
      const model = new Map<number, number>();
      let next = 0;
      for (const each of hashes) {
        expect(index.find(each)).toBe(model.get(each) ?? -1);
        if (model.has(each)) continue;
        const slot = next % 4;
        if (next < 4) index.insert(each, slot);
        else {
          model.delete(index.hashOf(slot));
          index.replace(slot, each);
        }
        model.set(each, slot);
        next += 1;
      }
      for (const [each, slot] of model) expect(index.find(each)).toBe(slot);
    }),
  );
});
