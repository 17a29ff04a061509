import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { align, createSlabArena, slabBytes } from '../../../../src/inference/memory/slab-arena.ts';

const KIB = 1024;

describe('slab arena', () => {
  test.each([
    [0, 64 * KIB],
    [64 * KIB, 64 * KIB],
    [64 * KIB + 1, 128 * KIB],
    [1_000_000, KIB * KIB],
  ])('%i bytes lie in a class of %i', (bytes, expected) => {
    expect(slabBytes(bytes)).toBe(expected);
  });

  test('hands the same slab out again, and allocates for a steady load once', () => {
    const arena = createSlabArena({ keptBytesMax: KIB * KIB });
    for (let round = 0; round < 5; round++) {
      const [small, large] = [arena.lease(10), arena.lease(100 * KIB)];
      expect([small.byteLength, large.byteLength]).toEqual([64 * KIB, 128 * KIB]);
      arena.release(small);
      arena.release(large);
    }
    expect(arena.allocations).toBe(2);
    expect(arena.keptBytes).toBe(192 * KIB);
  });

  test('never hands one slab to two', () => {
    const arena = createSlabArena({ keptBytesMax: KIB * KIB });
    arena.release(arena.lease(1));
    expect(arena.lease(1)).not.toBe(arena.lease(1));
  });

  test('keeps no more than its bound, whatever happens', () => {
    const keptBytesMax = 300 * KIB;
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 600 * KIB })), (sizes) => {
        const arena = createSlabArena({ keptBytesMax });
        const slabs = sizes.map((bytes) => arena.lease(bytes));
        sizes.forEach((bytes, i) => {
          expect(slabs[i]?.byteLength).toBeGreaterThanOrEqual(bytes);
        });
        for (const slab of slabs) {
          arena.release(slab);
          expect(arena.keptBytes).toBeLessThanOrEqual(keptBytesMax);
        }
      }),
    );
  });

  test('aligns to 64', () => {
    expect([0, 1, 64, 65].map(align)).toEqual([0, 64, 64, 128]);
  });
});
