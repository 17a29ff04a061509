import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import {
  explainDecision,
  formatExplanation,
  leafAt,
  toSignalVector,
} from '../../../../src/core/policy/explain.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { policySource, requests, TARGET, trees } from './arbitraries.ts';

const policy = compilePolicy(
  parsePolicy(
    JSON.stringify(
      policySource([
        { id: 'first', when: 'a > 1 && s == "eu"', to: TARGET },
        {
          id: 'outer',
          when: 'f || b > 1',
          tree: [
            { id: 'inner', when: 'n in [1]', to: TARGET },
            { id: 'last', to: TARGET },
          ],
        },
        { id: 'rest', to: TARGET },
      ]),
    ),
  ),
);

describe('explainDecision', () => {
  it('tells every branch that was looked at, with the values that it read', () => {
    const { signals, context } = toSignalVector(policy, [
      ['a', 0.5],
      ['s', 'eu'],
      ['f', true],
      ['n', 2],
    ]);
    const explanation = explainDecision(policy, signals, context);
    expect(explanation).toEqual({
      leaf: 'last',
      steps: [
        { node: 'first', when: 'a > 1 && s == "eu"', outcome: 'false', read: { a: 0.5, s: 'eu' } },
        { node: 'outer', when: 'f || b > 1', outcome: 'true', read: { f: true, b: null } },
        { node: 'inner', when: 'n in [1]', outcome: 'false', read: { n: 2 } },
        { node: 'last', when: null, outcome: 'true', read: {} },
      ],
    });
    expect(formatExplanation(explanation)).toEqual([
      'first: a > 1 && s == "eu" → false (a = 0.5, s = eu)',
      'outer: f || b > 1 → true (f = true, b = missing)',
      'inner: n in [1] → false (n = 2)',
      'last: no condition → taken',
      'leaf: last',
    ]);
  });

  it('calls a condition unknown that turns on a missing signal', () => {
    const { steps, leaf } = explainDecision(policy, new Float64Array(6).fill(Number.NaN));
    expect(steps.map(({ node, outcome }) => `${node} ${outcome}`)).toEqual([
      'first unknown',
      'outer unknown',
      'rest true',
    ]);
    expect(leaf).toBe('rest');
  });

  it('can be told from the signals of a result as well', () => {
    const { signals, context } = toSignalVector(policy, [
      ['a', 2],
      ['s', 'eu'],
      ['b', null],
    ]);
    const explanation = explainDecision(policy, signals, context);
    const read = explanation.steps.flatMap((step) => Object.entries(step.read));
    const again = toSignalVector(policy, read);
    expect(explainDecision(policy, again.signals, again.context)).toEqual(explanation);
    expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation);
  });

  it('ends in the leaf that decide gives', () => {
    fc.assert(
      fc.property(trees(), requests, (tree, request) => {
        const compiled = compilePolicy(parsePolicy(JSON.stringify(policySource(tree))));
        const { signals, context } = toSignalVector(compiled, request);
        const { leaf, steps } = explainDecision(compiled, signals, context);
        expect(leaf).toBe(leafAt(compiled, compiled.decide(signals, context)).id);
        expect(steps.at(-1)).toMatchObject({ node: leaf, outcome: 'true' });
      }),
      { numRuns: 100 },
    );
  });
});

describe('toSignalVector', () => {
  it('leaves out what the vector has no place for', () => {
    const { signals, context } = toSignalVector(policy, [
      ['n', 3],
      ['f', false],
      ['stranger', 1],
      ['__proto__', 'x'],
      ['s', 'eu'],
    ]);
    expect([...signals]).toEqual([Number.NaN, Number.NaN, 3, Number.NaN, 0, Number.NaN]);
    expect(Object.entries(context)).toEqual([
      ['__proto__', 'x'],
      ['s', 'eu'],
    ]);
  });
});

describe('leafAt', () => {
  it('throws for an index that no decision gives', () => {
    expect(() => leafAt(policy, 4)).toThrow('leaf 4 is not in the policy');
  });
});
