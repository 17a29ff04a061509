import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrowingMap } from '../../../src/core/growing-map.ts';

const NOTHING = GrowingMap.of<string, number>([]);

describe('a map that grows', () => {
  it('is as a map that is copied each time, whichever of those that were is grown', () => {
    const step = fc.record({
      from: fc.nat(),
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      value: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const grown = [NOTHING];
        const copied = [new Map<string, number>()];
        for (const { from, key, value } of steps) {
          const at = from % grown.length;
          const [map, copy] = [grown[at] ?? NOTHING, new Map(copied[at])];
          grown.push(map.with(key, value));
          if (!copy.has(key)) copy.set(key, value);
          copied.push(copy);
        }
        grown.forEach((map, at) => {
          const copy = copied[at] ?? new Map();
          expect([...map]).toEqual([...copy]);
          expect(map.size).toBe(copy.size);
          for (const key of ['a', 'b', 'c', 'd', 'e', 'f'])
            expect([map.has(key), map.get(key)]).toEqual([copy.has(key), copy.get(key)]);
        });
        expect([NOTHING.size, ...NOTHING]).toEqual([0]);
      }),
    );
  });

  it('holds a value that is undefined', () => {
    const map = GrowingMap.of([['a', undefined]]);
    expect([map.has('a'), map.get('a'), map.with('a', undefined)]).toEqual([true, undefined, map]);
  });
});
