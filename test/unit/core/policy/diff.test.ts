import { describe, expect, it } from 'vitest';
import { type CompiledPolicy, compilePolicy } from '../../../../src/core/policy/compile.ts';
import { diffPolicies, unexpectedChanges } from '../../../../src/core/policy/diff.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { policySource, TARGET } from './arbitraries.ts';

const FPGA = { accelerator: 'fpga', kernel: 'attention', memory: 'hbm' };
const signalNames = ['a'];

function compile(tree: readonly unknown[], names: readonly string[] = signalNames): CompiledPolicy {
  return compilePolicy(parsePolicy(JSON.stringify(policySource(tree))), { signalNames: names });
}

const corpus = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((a) => ({ signals: Float64Array.of(a), context: {} }));
const before = compile([
  { id: 'high', when: 'a >= 8', to: FPGA },
  { id: 'rest', to: TARGET },
]);
const after = compile([
  { id: 'higher', when: 'a >= 9', to: FPGA },
  { id: 'middle', when: 'a >= 5', to: { ...TARGET, memory: 'l2' } },
  { id: 'rest', to: TARGET },
]);

describe('diffPolicies', () => {
  it('counts leaf by leaf and accelerator by accelerator', () => {
    expect(diffPolicies(before, after, corpus)).toEqual({
      requests: 10,
      changed: 4,
      changedShare: 0.4,
      leaves: [
        { from: 'rest', to: 'rest', requests: 5, share: 0.5 },
        { from: 'rest', to: 'middle', requests: 3, share: 0.3 },
        { from: 'high', to: 'higher', requests: 1, share: 0.1 },
        { from: 'high', to: 'middle', requests: 1, share: 0.1 },
      ],
      accelerators: [
        { from: 'cpu', to: 'cpu', requests: 8, share: 0.8 },
        { from: 'fpga', to: 'cpu', requests: 1, share: 0.1 },
        { from: 'fpga', to: 'fpga', requests: 1, share: 0.1 },
      ],
      changedTargets: [
        {
          leaf: { from: 'rest', to: 'middle' },
          from: { ...TARGET, variant: null },
          to: { ...TARGET, memory: 'l2', variant: null },
          ...{ requests: 3, share: 0.3 },
        },
        {
          leaf: { from: 'high', to: 'middle' },
          from: { ...FPGA, variant: null },
          to: { ...TARGET, memory: 'l2', variant: null },
          ...{ requests: 1, share: 0.1 },
        },
      ],
      changedLeaves: new Map([['middle', 4]]),
    });
  });

  it.each(['accelerator', 'kernel', 'memory', 'variant'])('counts another %s as a change', (field) => {
    const other = compile([
      { id: 'all', to: { ...TARGET, [field]: field === 'variant' ? 'enhanced' : 'other' } },
    ]);
    const one = compile([{ id: 'all', to: TARGET }]);
    const { changed, changedTargets } = diffPolicies(one, other, corpus);
    expect(changed).toBe(10);
    const to = { ...TARGET, variant: null, [field]: field === 'variant' ? 'enhanced' : 'other' };
    const from = { ...TARGET, variant: null };
    expect(changedTargets).toEqual([{ leaf: { from: 'all', to: 'all' }, from, to, requests: 10, share: 1 }]);
    expect(diffPolicies(one, one, corpus).changed).toBe(0);
  });

  it('has nothing to say without requests', () => {
    expect(diffPolicies(before, after, [])).toMatchObject({
      requests: 0,
      changed: 0,
      changedShare: 0,
      leaves: [],
    });
  });

  it('refuses policies that read different vectors', () => {
    expect(() => diffPolicies(before, compile([{ id: 'rest', to: TARGET }], ['b']), corpus)).toThrow(
      'different vectors of signals',
    );
  });
});

describe('unexpectedChanges', () => {
  const diff = diffPolicies(before, after, corpus);

  it.each<[Parameters<typeof unexpectedChanges>[1], string[]]>([
    [{ changedShare: undefined, leaves: undefined }, []],
    [{ changedShare: [0.4, 0.5], leaves: ['middle'] }, []],
    [{ changedShare: [0.1, 0.14], leaves: undefined }, ['40.0 % of requests change, not 10.0 % … 14.0 %']],
    [
      { changedShare: [0.5, 0.6], leaves: ['higher'] },
      [
        '40.0 % of requests change, not 50.0 % … 60.0 %',
        '40.0 % of requests change to leaf middle, which was not declared',
      ],
    ],
  ])('%#: %o', (expectation, found) => {
    expect(unexpectedChanges(diff, expectation)).toEqual(found);
  });
});
