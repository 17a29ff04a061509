import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from '../../../src/core/fifo.ts';
import { Watched } from '../alive.fixture.ts';

type Step =
  | { kind: 'push' }
  | { kind: 'push all'; count: number }
  | { kind: 'shift' }
  | { kind: 'take'; count: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('push' as const) }),
  fc.record({ kind: fc.constant('push all' as const), count: fc.nat(20) }),
  fc.record({ kind: fc.constant('shift' as const) }),
  fc.record({ kind: fc.constant('take' as const), count: fc.nat(15) }),
);

describe('Fifo', () => {
  it('is an array that is pushed at the end and taken from the front', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const fifo = new Fifo<number>();
        const model: number[] = [];
        let next = 0;
        const some = (count: number): number[] => Array.from({ length: count }, () => next++);
        for (const each of steps) {
          if (each.kind === 'shift') expect(fifo.shift()).toBe(model.shift());
          else if (each.kind === 'take') expect(fifo.take(each.count)).toEqual(model.splice(0, each.count));
          else {
            const pieces = some(each.kind === 'push' ? 1 : each.count);
            model.push(...pieces);
            if (each.kind === 'push') for (const piece of pieces) fifo.push(piece);
            else fifo.pushAll(pieces);
          }
          expect(fifo.length).toBe(model.length);
          expect([0, 1, model.length - 1, model.length].map((place) => fifo.at(place))).toEqual(
            [0, 1, model.length - 1, model.length].map((place) => (place < 0 ? undefined : model[place])),
          );
        }
      }),
    );
  });

  it.each(['shift', 'take'])('lets go at once of what was taken by %s, however much is left', async (way) => {
    const fifo = new Fifo<object>();
    const watched = new Watched();
    for (let n = 0; n < 1_000; n += 1) fifo.push(watched.add({ n }));
    if (way === 'take') fifo.take(100);
    else for (let n = 0; n < 100; n += 1) fifo.shift();
    expect({ letGo: await watched.areAlive(900), length: fifo.length }).toEqual({ letGo: true, length: 900 });
  });
});
