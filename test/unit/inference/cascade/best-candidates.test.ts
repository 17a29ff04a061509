import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bestCandidates } from '../../../../src/inference/cascade/best-candidates.ts';

describe('bestCandidates', () => {
  it.each([
    { name: 'the best, in the order sent', scores: [1, 5, 3, 4], keep: 2, want: [1, 3] },
    { name: 'of equal ones the earlier', scores: [2, 2, 2], keep: 2, want: [0, 1] },
    { name: 'all where there are fewer', scores: [3, 1], keep: 5, want: [0, 1] },
    { name: 'all where there are as many', scores: [3, 1], keep: 2, want: [0, 1] },
    { name: 'none of none', scores: [], keep: 3, want: [] },
    { name: 'negative scores', scores: [-3, -1, -2], keep: 1, want: [1] },
    {
      name: 'more than ten, by number and not by text',
      scores: Array(12).fill(1),
      keep: 11,
      want: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    },
  ])('$name', ({ scores, keep, want }) => {
    expect([...bestCandidates(Float32Array.from(scores), keep)]).toEqual(want);
  });

  it('keeps no candidate that is worse than one it drops, for any scores', () => {
    const scores = fc.float32Array({ noNaN: true, maxLength: 64 });
    fc.assert(
      fc.property(scores, fc.integer({ min: 1, max: 70 }), (values, keep) => {
        const kept = [...bestCandidates(values, keep)];
        const dropped = [...values.keys()].filter((place) => !kept.includes(place));
        expect(kept).toEqual(kept.toSorted((a, b) => a - b));
        expect(new Set(kept).size).toBe(Math.min(keep, values.length));
        for (const out of dropped)
          for (const place of kept) expect(values[place]).toBeGreaterThanOrEqual(values[out] ?? 0);
      }),
    );
  });
});
