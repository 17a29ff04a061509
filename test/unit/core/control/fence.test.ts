import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inForce, withoutRepeats } from '../../../../src/core/control/fence.ts';

const numbered = (terms: readonly number[]) => terms.map((term, place) => ({ term, place }));

it.each([
  ['nothing', [], []],
  ['one leader', [1, 1, 1], [0, 1, 2]],
  ['a leader that did not know that it was replaced', [1, 2, 1, 2, 1], [0, 1, 3]],
  ['a replaced one that nobody was above yet', [2, 1, 3, 2, 3], [0, 2, 4]],
])('of the entries of %s those in force are kept, in their order', (_what, terms, kept) => {
  expect(inForce(numbered(terms)).map(({ place }) => place)).toEqual(kept);
});

it('terms never fall in what is kept, and no entry of the highest is lost', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5)), (terms) => {
      const kept = inForce(numbered(terms)).map(({ term }) => term);
      expect(kept).toEqual(kept.toSorted((a, b) => a - b));
      const highest = Math.max(...terms);
      expect(kept.filter((term) => term === highest)).toHaveLength(
        terms.filter((term) => term === highest).length,
      );
    }),
  );
});

it('of what was appended twice the first counts; two events, or two leaders, that share an id do both', () => {
  const entry = (eventId: string, actor: string, evidence: string) => ({ eventId, actor, evidence });
  const [one, two, rival] = [entry('5-held', 'a', 'x'), entry('5-held', 'a', 'y'), entry('term-2', 'b', 'z')];
  const taken = entry('term-2', 'a', 'z');
  const written = [one, two, { ...one }, rival, taken, { ...two }, { ...taken }];
  expect(withoutRepeats(written)).toEqual([one, two, rival, taken]);
});
