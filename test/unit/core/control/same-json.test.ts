import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isSameJson } from '../../../../src/core/control/same-json.ts';

it.each([
  [
    { a: 1, b: [2, { c: null }] },
    { b: [2, { c: null }], a: 1 },
  ],
  [{ a: undefined, b: 1 }, { b: 1 }],
])('%j is the same as %j', (one, other) => {
  expect(isSameJson(one, other)).toBe(true);
});

it.each<[unknown, unknown]>([
  [{ a: 1 }, { a: 2 }],
  [{ a: 1 }, { a: 1, b: 2 }],
  [
    { a: 1, b: undefined },
    { a: 1, b: 2 },
  ],
  [
    [1, 2],
    [2, 1],
  ],
  [[1], [1, 2]],
  [[], {}],
  [null, {}],
  [1, '1'],
  [undefined, null],
])('%j is not the same as %j', (one, other) => {
  expect(isSameJson(one, other)).toBe(false);
  expect(isSameJson(other, one)).toBe(false);
});

it('a value is the same as what its JSON says, and another only where its JSON is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      expect(isSameJson(one, JSON.parse(JSON.stringify(one)))).toBe(true);
      if (isSameJson(one, other))
        expect(JSON.parse(JSON.stringify(one))).toEqual(JSON.parse(JSON.stringify(other)));
    }),
  );
});
