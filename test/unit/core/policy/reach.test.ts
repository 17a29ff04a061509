import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Branch } from '../../../../src/core/policy/document.ts';
import { decideStepwise } from '../../../../src/core/policy/evaluate.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { findUnreachable } from '../../../../src/core/policy/reach.ts';
import { type BranchSource, conditions, policySource, requests, TARGET, trees } from './arbitraries.ts';

const NONE = new Map<string, number>();

/** Branches in a row, the last one without a condition. */
function row(...whens: string[]): BranchSource[] {
  const guarded = whens.map((when, index) => ({ id: `b${index}`, when, to: TARGET }));
  return [...guarded, { id: 'rest', to: TARGET }];
}

function parseTree(tree: readonly unknown[]): readonly Branch[] {
  return parsePolicy(JSON.stringify(policySource(tree))).tree;
}

function unreachable(tree: readonly unknown[]): [string, string[]][] {
  const { unreachable: found, complete } = findUnreachable(parseTree(tree), NONE);
  expect(complete).toBe(true);
  return found.map(({ branch, takenBy }) => [branch.id, [...takenBy]]);
}

describe('findUnreachable', () => {
  it.each([
    ['contradicting comparisons', row('a > 1 && a < 0.5')],
    ['no number in between', row('a > 1 && a < 1')],
    ['no whole number in between', row('n > 3 && n < 4')],
    ['a flag and its opposite', row('f && !f')],
    ['two texts at once', row('s == "eu" && s == "us"')],
    ['a text in and out of a list', row('s in ["eu", "us"] && s != "eu" && s != "us"')],
    ['no list', row('s in []')],
    ['arithmetic', row('a + b > 1 && a + b < 0')],
    ['signals against each other', row('a > b && a < b')],
    ['false', row('false || 1 > 2')],
    ['every alternative', row('(a > 1 || a < 0) && a == 0.5')],
  ])('finds contradictions: %s', (_, tree) => {
    expect(unreachable(tree)).toEqual([['b0', []]]);
  });

  it.each<[string, BranchSource[], [string, string[]][]]>([
    ['the same again', row('a > 1', 'a > 1'), [['b1', ['b0']]]],
    ['a stricter one', row('a > 1', 'a > 2 && b < 3'), [['b1', ['b0']]]],
    ['what two leave', row('a > 1', 'a <= 1', 'a == 7'), [['b2', ['b0']]]],
    ['what two leave together', row('a > 1', 'a <= 1', 'a < 3'), [['b2', ['b0', 'b1']]]],
    [
      'two sides of two signals',
      row('a > 1 && b > 1', 'a > 1 && b <= 1', 'a > 2 && b > 0'),
      [['b2', ['b0', 'b1']]],
    ],
    ['all of a flag', row('f', '!f', 'f && a > 1'), [['b2', ['b0']]]],
    ['whole numbers', row('n <= 3', 'n >= 4', 'n != 9'), [['b2', ['b0', 'b1']]]],
    ['texts', row('s == "eu"', 's != "eu"', 's in ["us", "ap"]'), [['b2', ['b1']]]],
    [
      'an unconditional branch',
      [{ id: 'x', to: TARGET }, ...row('a > 1')],
      [
        ['b0', ['x']],
        ['rest', ['x']],
      ],
    ],
    [
      'a true condition',
      row('true', 'a > 1'),
      [
        ['b1', ['b0']],
        ['rest', ['b0']],
      ],
    ],
    [
      'a branch with a tree',
      [{ id: 'x', when: 'a > 1', tree: [{ id: 'y', to: TARGET }] }, ...row('a > 2')],
      [['b0', ['x']]],
    ],
  ])('finds what earlier branches take: %s', (_, tree, expected) => {
    expect(unreachable(tree)).toEqual(expected);
  });

  it('carries outer conditions and earlier outer branches into a tree', () => {
    const tree = [
      { id: 'first', when: 'b > 5', to: TARGET },
      {
        id: 'outer',
        when: 'a > 1',
        tree: [
          { id: 'low', when: 'a < 1', to: TARGET },
          { id: 'same', when: 'a > 0.5', to: TARGET },
          { id: 'high', when: 'b > 6', to: TARGET },
          { id: 'inner-rest', to: TARGET },
        ],
      },
      { id: 'rest', to: TARGET },
    ];
    expect(unreachable(tree)).toEqual([
      ['low', []],
      ['high', ['first']],
      ['inner-rest', ['same']],
    ]);
  });

  it.each([
    ['a wider one after a narrower', row('a > 2', 'a > 1')],
    ['what is left when a signal is missing', row('a > 1', 'a <= 1')],
    ['another signal', row('a > 1', 'b > 1')],
    ['a stricter one first', row('a > 1 && b > 1', 'a > 1')],
    ['a single number left', row('a > 1', 'a < 1', 'a >= 1')],
    ['a text that is not listed', row('s in ["eu"]', 's != "us"')],
  ])('leaves alone: %s', (_, tree) => {
    expect(unreachable(tree)).toEqual([]);
  });

  it('says so when a policy is too large to look at all of it, and claims nothing', () => {
    const wide = Array.from({ length: 9 }, (_, i) => `(a > ${i} || b > ${i})`).join(' && ');
    expect(findUnreachable(parseTree(row(wide, wide)), NONE)).toEqual({ unreachable: [], complete: false });
  });

  it('is exact for comparisons with constants', () => {
    // One value in every cell that the constants 0, 1 and 2 cut, and one for a signal that is missing.
    const values = [-1, 0, 0.5, 1, 1.5, 2, 3, Number.NaN];
    const grid = values.flatMap((a) => values.map((b) => ({ a, b })));
    const comparison = fc
      .tuple(
        fc.constantFrom('a', 'b'),
        fc.constantFrom('<', '<=', '>', '>=', '==', '!='),
        fc.constantFrom('0', '1', '2'),
      )
      .map((parts) => parts.join(' '));
    const condition = fc.oneof(
      comparison,
      fc.tuple(comparison, fc.constantFrom('&&', '||'), comparison).map(([l, op, r]) => `(${l} ${op} ${r})`),
      comparison.map((operand) => `!(${operand})`),
    );
    fc.assert(
      fc.property(trees(condition), (source) => {
        const document = parsePolicy(JSON.stringify(policySource(source)));
        const reached = new Set(
          grid.flatMap((point) => {
            const reader = {
              number: (name: string) => (name === 'a' ? point.a : point.b),
              text: () => undefined,
            };
            return decideStepwise(document, reader, NONE).steps.flatMap(({ branch, truth }) =>
              truth === true ? [branch.id] : [],
            );
          }),
        );
        const { unreachable: found, complete } = findUnreachable(document.tree, NONE);
        fc.pre(complete);
        const dead = new Set(allBelow(found.map(({ branch }) => branch)));
        const expected = allBelow(document.tree).filter((id) => !reached.has(id));
        expect([...dead].sort()).toEqual(expected.sort());
      }),
      { numRuns: 200 },
    );
  });

  it('never calls a branch unreachable that a request reaches', () => {
    fc.assert(
      fc.property(trees(conditions), fc.array(requests, { maxLength: 20 }), (source, corpus) => {
        const document = parsePolicy(JSON.stringify(policySource(source)));
        const tuned = new Map(document.tunables.map((tunable) => [tunable.name, tunable.default]));
        const dead = new Set(
          allBelow(findUnreachable(document.tree, tuned).unreachable.map(({ branch }) => branch)),
        );
        for (const request of corpus) {
          const byName = new Map(request);
          // The type of n and m is int: what is not whole is outside the promise.
          const reader = {
            number: (name: string) => Math.trunc(Number(byName.get(name) ?? Number.NaN)),
            text: (name: string) => byName.get(name)?.toString(),
          };
          expect(dead).not.toContain(decideStepwise(document, reader, tuned).leaf.id);
        }
      }),
      { numRuns: 150 },
    );
  });
});

function allBelow(tree: readonly Branch[]): string[] {
  return tree.flatMap((branch) => [branch.id, ...(branch.kind === 'tree' ? allBelow(branch.tree) : [])]);
}
