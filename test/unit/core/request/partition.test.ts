import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { murmur2, partitionForKey } from '../../../../src/core/request/partition.ts';

describe('murmur2', () => {
  it.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('of %s is what the Java client computes', (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash);
  });

  it('does not depend on where the key lies in its buffer', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat({ max: 7 }), (key, before) => {
        const buffer = Buffer.alloc(before + key.length + 3, 0xaa);
        buffer.set(key, before);
        expect(murmur2(buffer.subarray(before, before + key.length))).toBe(murmur2(key));
      }),
    );
  });
});

describe('partitionForKey', () => {
  it.each([
    ['21', 48, (-973932308 & 0x7fffffff) % 48],
    ['abc', 12, 479470107 % 12],
    ['abc', 1, 0],
  ])('of %s among %i', (key, partitions, partition) => {
    expect(partitionForKey(Buffer.from(key), partitions)).toBe(partition);
  });

  it('is a partition for any key', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.integer({ min: 1, max: 1000 }), (key, partitions) => {
        const partition = partitionForKey(key, partitions);
        expect(Number.isInteger(partition) && partition >= 0 && partition < partitions).toBe(true);
      }),
    );
  });
});
