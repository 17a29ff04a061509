import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agenda } from '../../../../src/simulation/signals/agenda.ts';

describe('an agenda', () => {
  it('does everything in the order of time, and of planning where that is the same', () => {
    const plan = fc.record({
      isDelay: fc.boolean(),
      ms: fc.integer({ min: 0, max: 5 }),
      following: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(plan, { maxLength: 40 }), (plans) => {
        const agenda = new Agenda();
        const done: { dueMs: number; planned: number; atMs: number }[] = [];
        let planned = 0;
        const add = (isDelay: boolean, ms: number, following: number): void => {
          const dueMs = agenda.nowMs + ms;
          planned += 1;
          const mine = planned;
          const call = (): void => {
            done.push({ dueMs, planned: mine, atMs: agenda.nowMs });
            if (following > 0) add(!isDelay, following, following - 1);
          };
          if (isDelay) agenda.later(ms, call);
          else agenda.at(dueMs, call);
        };
        for (const { isDelay, ms, following } of plans) add(isDelay, ms, following);
        for (let untilMs = 2; untilMs <= 20; untilMs += 3) {
          agenda.runTo(untilMs);
          expect(agenda.nowMs).toBe(untilMs);
          expect(done.every(({ dueMs }) => dueMs <= untilMs)).toBe(true);
        }
        expect(done).toHaveLength(planned);
        expect(done.every(({ dueMs, atMs }) => dueMs === atMs)).toBe(true);
        expect(done).toEqual(done.toSorted((a, b) => a.dueMs - b.dueMs || a.planned - b.planned));
      }),
    );
  });
});
