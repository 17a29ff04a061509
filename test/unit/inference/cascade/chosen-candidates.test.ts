import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readIds, text } from '../../../../src/client/tensors.ts';
import { chosenRows, itemOfStage } from '../../../../src/inference/cascade/chosen-candidates.ts';
import { floatTensor, longTensor } from '../toy-model.ts';

const at = (...places: number[]): Uint32Array => Uint32Array.from(places);
const floatsOf = (bytes: Buffer): number[] => [...new Float32Array(Uint8Array.from(bytes).buffer)];

describe('rows of chosen candidates', () => {
  it('of numbers, by their size', () => {
    const rows = chosenRows(floatTensor('item', [3, 2], [1, 2, 3, 4, 5, 6]), at(0, 2));
    expect(rows).toMatchObject({ name: 'item', datatype: 'FP32', shape: [2, 2] });
    expect(floatsOf(rows.contents)).toEqual([1, 2, 5, 6]);
  });

  it('of whole numbers', () => {
    const rows = chosenRows(longTensor('ids', [4], [7, 8, 9, 10]), at(1, 3));
    expect(rows.contents).toEqual(longTensor('ids', [2], [8, 10]).contents);
  });

  it('of texts of any length, for any places', () => {
    const list = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(list, fc.infiniteStream(fc.boolean()), (texts, coins) => {
        const places = [...texts.keys()].filter(() => coins.next().value === true);
        const rows = chosenRows(text('ids', texts), Uint32Array.from(places));
        expect(rows.shape).toEqual([places.length]);
        expect(readIds(rows)).toEqual(places.map((place) => texts[place]));
      }),
    );
  });

  it.each([
    {
      name: 'fewer rows than the places ask for',
      tensor: floatTensor('item', [2, 1], [1, 2]),
      places: at(2),
    },
    {
      name: 'bytes that are not whole rows',
      tensor: { name: 'item', datatype: 'FP32', shape: [3, 1], contents: Buffer.alloc(10) },
      places: at(0),
    },
    {
      name: 'a text that ends within',
      tensor: { ...text('ids', ['a', 'bcd']), contents: text('ids', ['a', 'bcd']).contents.subarray(0, 10) },
      places: at(1),
    },
  ])('refuses $name', ({ tensor, places }) => {
    expect(() => chosenRows(tensor, places)).toThrow(
      expect.objectContaining({ code: 'INVALID_TENSOR', message: expect.stringContaining(tensor.name) }),
    );
  });
});

describe('an item of a stage', () => {
  const item = {
    requestTensors: [floatTensor('user', [1], [1]), floatTensor('context', [1], [2])],
    candidateTensors: [floatTensor('item', [3, 1], [1, 2, 3]), floatTensor('fresh', [3, 1], [4, 5, 6])],
    candidateIds: longTensor('ids', [3], [7, 8, 9]),
    hints: { weight: 2 },
    scoreLimit: 2,
  };
  const inputs = { request: new Set(['user']), candidate: new Set(['item']) };
  const names = (tensors: readonly { name: string }[]): string[] => tensors.map(({ name }) => name);

  it('has what its model takes, and all candidates at first', () => {
    const first = itemOfStage(item, inputs);
    expect(names(first.requestTensors)).toEqual(['user']);
    expect(names(first.candidateTensors)).toEqual(['item']);
    expect(first).toMatchObject({ scoreLimit: 2, hints: { weight: 2 }, candidateIds: item.candidateIds });
  });

  it('has the rows and ids of those that were kept', () => {
    const next = itemOfStage(item, inputs, at(1));
    expect(next.scoreLimit).toBe(1);
    expect(floatsOf(next.candidateTensors[0]?.contents ?? Buffer.alloc(0))).toEqual([2]);
    expect(next.candidateIds?.contents).toEqual(longTensor('ids', [1], [8]).contents);
  });
});
