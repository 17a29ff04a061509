import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OwnDispatches } from '../../../../src/core/routing/own-dispatches.ts';

describe('OwnDispatches', () => {
  it('holds what was pushed and has not ended, in order, whatever ends first', () => {
    const step = fc.oneof(
      fc.record({ push: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ end: fc.nat({ max: 20 }) }),
      fc.record({ clear: fc.constant(true) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), fc.nat({ max: 60 }), (steps, after) => {
        const own = new OwnDispatches();
        let open: { sequence: number; predictedMs: number; dispatchedAtMs: number; dueMs: number }[] = [];
        let sequence = 0;
        for (const each of steps) {
          if ('push' in each) {
            const dispatch = {
              sequence,
              predictedMs: each.push,
              dispatchedAtMs: sequence,
              dueMs: 2 * sequence,
            };
            own.push(sequence, each.push, sequence, 2 * sequence);
            open.push(dispatch);
            sequence += 1;
          } else if ('end' in each) {
            const ended = open[each.end]?.sequence ?? sequence;
            const expected = open.find((dispatch) => dispatch.sequence === ended);
            const found = own.end(ended);
            expect(found?.predictedMs).toBe(expected?.predictedMs);
            expect(found?.dispatchedAtMs).toBe(expected?.dispatchedAtMs);
            open = open.filter((dispatch) => dispatch !== expected);
          } else if (sequence % 7 === 0) {
            own.clear();
            open = [];
          }
          expect(own.count).toBe(open.length);
          expect(own.workMs).toBe(open.reduce((sum, dispatch) => sum + dispatch.predictedMs, 0));
          expect(own.oldestDueMs).toBe(open[0]?.dueMs ?? Number.POSITIVE_INFINITY);
        }
        const later = open.filter((dispatch) => dispatch.sequence > after);
        const seen: number[] = [];
        own.forEachAfter(after, (_predictedMs, dispatchedAtMs) => seen.push(dispatchedAtMs));
        expect(seen).toEqual(later.map(({ dispatchedAtMs }) => dispatchedAtMs));
        expect(own.countAfter(after)).toBe(later.length);
        expect(own.workAfter(after)).toBe(later.reduce((sum, dispatch) => sum + dispatch.predictedMs, 0));
      }),
    );
  });
});
