import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Heap } from '../../../../src/core/overload/heap.ts';

describe('the heap', () => {
  it('gives the first of what is in it, whatever is pushed and popped in between', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 50 }))), (steps) => {
        const heap = new Heap<number>((a, b) => a < b);
        const expected: number[] = [];
        for (const step of steps) {
          if (step === null) expect(heap.pop()).toBe(expected.sort((a, b) => a - b).shift());
          else {
            heap.push(step);
            expected.push(step);
          }
          expect(heap.length).toBe(expected.length);
        }
        expect([...heap].sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
      }),
    );
  });
});
