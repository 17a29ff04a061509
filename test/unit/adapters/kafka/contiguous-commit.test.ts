import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ContiguousCommit } from '../../../../src/adapters/kafka/contiguous-commit.ts';

/** Offsets that rise, with gaps as compaction leaves them, and an order in which they are acknowledged. */
const deliveries = fc
  .array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 300 })
  .chain((steps) => {
    let offset = 99;
    const offsets = steps.map((step) => {
      offset += step;
      return offset;
    });
    return fc.record({
      offsets: fc.constant(offsets),
      order: fc.shuffledSubarray(offsets, { minLength: 0 }),
    });
  });

describe('ContiguousCommit', () => {
  it('commits the highest offset below which all are acknowledged, in any order of acknowledgements', () => {
    fc.assert(
      fc.property(deliveries, ({ offsets, order }) => {
        const commit = new ContiguousCommit(100);
        for (const offset of offsets) commit.add(offset, offset % 7);
        const open = new Set(offsets);
        for (const offset of order) {
          expect(commit.acknowledge(offset)).toBe(true);
          open.delete(offset);
          const expected = open.size === 0 ? (offsets.at(-1) ?? 0) + 1 : Math.min(...open);
          expect(commit.committable).toBe(expected);
          expect(commit.unacknowledged).toBe(open.size);
          expect(commit.unacknowledgedBytes).toBe([...open].reduce((sum, each) => sum + (each % 7), 0));
        }
      }),
    );
  });

  it('goes on while records are added and acknowledged in turn', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { maxLength: 2_000 }), (turns) => {
        const commit = new ContiguousCommit(0);
        const open: number[] = [];
        let next = 0;
        for (const turn of turns) {
          if (turn > 0 || open.length === 0) {
            commit.add(next, 1);
            open.push(next++);
          } else {
            const [offset = -1] = open.splice(open.length >> 1, 1);
            expect(commit.acknowledge(offset)).toBe(true);
          }
          expect(commit.committable).toBe(open[0] ?? next);
          expect(commit.unacknowledged).toBe(open.length);
        }
      }),
    );
  });

  it('counts an acknowledgement once, and none of what was never delivered', () => {
    const commit = new ContiguousCommit(10);
    for (const offset of [10, 13, 14]) commit.add(offset, 1);
    expect([9, 11, 12, 15, 1e9, -1].map((offset) => commit.acknowledge(offset))).toEqual(
      Array(6).fill(false),
    );
    expect(commit.acknowledge(13)).toBe(true);
    expect(commit.acknowledge(13)).toBe(false);
    expect(commit.committable).toBe(10);
    expect(commit.acknowledge(10)).toBe(true);
    expect(commit.acknowledge(10)).toBe(false);
    expect(commit.committable).toBe(14);
  });

  it('moves past offsets without records only when nothing is open', () => {
    const commit = new ContiguousCommit(5);
    commit.add(5, 1);
    commit.advanceTo(9);
    expect(commit.committable).toBe(5);
    commit.acknowledge(5);
    expect(commit.committable).toBe(9);
    commit.advanceTo(7);
    expect(commit.committable).toBe(9);
  });
});
