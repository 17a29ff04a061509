import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextSlotMove, type SlotHolder, type SlotMove } from '../../../../src/core/routing/slot-shares.ts';

const holder = (worker: string, ...slots: number[]): SlotHolder => ({ worker, slots });

describe('nextSlotMove', () => {
  it.each<[string, SlotHolder, SlotHolder[], number, number, SlotMove | undefined]>([
    ['the first worker takes a slot', holder('a'), [], 4, 4, { claim: 0 }],
    ['and all others', holder('a', 0, 1), [], 4, 4, { claim: 2 }],
    ['but no more than it may', holder('a', 0, 1), [], 4, 2, undefined],
    ['has all of them', holder('a', 0, 1, 2, 3), [], 4, 4, undefined],
    ['lets go for one that has none', holder('a', 0, 1, 2, 3), [holder('b')], 4, 4, { release: 3 }],
    ['which waits for that', holder('b'), [holder('a', 0, 1, 2, 3)], 4, 4, undefined],
    ['and claims it', holder('b'), [holder('a', 0, 1, 2)], 4, 4, { claim: 3 }],
    ['even shares', holder('a', 0, 1), [holder('b', 2, 3)], 4, 4, undefined],
    ['shares that differ by one', holder('a', 0, 1), [holder('b', 2)], 3, 4, undefined],
    [
      'of two that hold most, one lets go',
      holder('b', 2, 3),
      [holder('a', 0, 1), holder('c')],
      4,
      4,
      { release: 3 },
    ],
    ['and the other not', holder('a', 0, 1), [holder('b', 2, 3), holder('c')], 4, 4, undefined],
    ['two that want claim different ones', holder('b'), [holder('a'), holder('c', 0)], 3, 4, { claim: 2 }],
    ['of one slot, who has least', holder('a', 0), [holder('b', 1), holder('c')], 4, 1, undefined],
    ['more workers than slots', holder('c'), [holder('a', 0), holder('b', 1)], 2, 4, undefined],
    ['a slot of one that is gone', holder('a', 0), [holder('b', 1)], 3, 4, { claim: 2 }],
    ['no slots', holder('a'), [], 0, 4, undefined],
  ])('%s', (_name, own, others, slots, slotsMax, expected) => {
    expect(nextSlotMove({ own, others, slots, slotsMax })).toEqual(expected);
  });

  /** Everybody moves at once, by what was to be seen some steps ago; of two that claim a slot one gets it, as its group decides. */
  it('comes to even shares, without a vacant slot, and rests there, whoever comes and goes', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const events = fc.array(fc.array(fc.constantFrom(...names), { minLength: 1 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(
        events,
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 0, max: 3 }),
        (crews, slots, slotsMax, lag) => {
          let held = new Map<string, number[]>();
          for (const crew of crews) {
            held = new Map([...new Set(crew)].map((name) => [name, held.get(name) ?? []]));
            const seen: Map<string, number[]>[] = [];
            const steps = 40 + (slots + 6) * 4 * (lag + 1);
            for (let step = 0; step < steps; step += 1) {
              seen.push(new Map([...held].map(([name, own]) => [name, [...own]])));
              move(held, seen[Math.max(0, seen.length - 1 - lag)] ?? new Map(), slots, slotsMax);
            }
            const counts = [...held.values()].map((own) => own.length);
            const all = [...held.values()].flat();
            expect(new Set(all).size).toBe(all.length);
            expect(all.length).toBe(Math.min(slots, slotsMax * held.size));
            expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
            const rested = JSON.stringify([...held]);
            move(held, held, slots, slotsMax);
            expect(JSON.stringify([...held])).toBe(rested);
          }
        },
      ),
    );
  });
});

function move(
  held: Map<string, number[]>,
  seen: ReadonlyMap<string, readonly number[]>,
  slots: number,
  slotsMax: number,
): void {
  const moves = [...held].map(([worker, own]) => {
    const others = [...seen]
      .filter(([name]) => name !== worker)
      .map(([name, theirs]) => holder(name, ...theirs));
    return { worker, next: nextSlotMove({ own: { worker, slots: own }, others, slots, slotsMax }) };
  });
  for (const { worker, next } of moves) {
    const own = held.get(worker) ?? [];
    if (next === undefined) continue;
    if ('release' in next)
      held.set(
        worker,
        own.filter((slot) => slot !== next.release),
      );
    else if (![...held.values()].flat().includes(next.claim)) own.push(next.claim);
  }
}
