import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import {
  type CompiledPolicy,
  type CompileOptions,
  compilePolicy,
  stepTunable,
} from '../../../../src/core/policy/compile.ts';
import { leafBranches, type SignalValue } from '../../../../src/core/policy/document.ts';
import { decideStepwise } from '../../../../src/core/policy/evaluate.ts';
import { leafAt, toSignalVector } from '../../../../src/core/policy/explain.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { policySource, requests, SIGNALS, TARGET, trees } from './arbitraries.ts';

function compile(
  tree: readonly unknown[],
  options: CompileOptions = {},
  extra: Record<string, unknown> = {},
): CompiledPolicy {
  return compilePolicy(parsePolicy(JSON.stringify(policySource(tree, extra))), options);
}

function decide(policy: CompiledPolicy, values: Record<string, SignalValue>): string {
  const { signals, context } = toSignalVector(policy, Object.entries(values));
  return leafAt(policy, policy.decide(signals, context)).id;
}

/** A policy that says whether a condition is true. */
function conditionPolicy(when: string, options: CompileOptions = {}): CompiledPolicy {
  return compile(
    [
      { id: 'yes', when, to: TARGET },
      { id: 'no', to: TARGET },
    ],
    options,
  );
}

describe('compilePolicy', () => {
  it.each([
    ['a / 0.0 > 5.0 && a / -0.0 < -5.0', 1],
    ['a / 0.0 > 5.0 || a / -0.0 > 5.0', -1],
  ])('tells divisors of 0 and -0 apart: %s', (when, a) => {
    expect(decide(conditionPolicy(when), { a })).toBe('yes');
  });

  it('numbers the leaves in the order of the document, and fills in memory domains from the fleet', () => {
    const policy = compile([
      {
        id: 'outer',
        when: 'f',
        tree: [
          { id: 'x', when: 'g', to: { accelerator: 'fpga', kernel: 'attention', variant: 'enhanced' } },
          { id: 'y', to: TARGET, fallback: ['mtia'] },
        ],
      },
      { id: 'z', to: TARGET },
    ]);
    expect(policy.leaves).toEqual([
      {
        id: 'x',
        index: 0,
        target: { accelerator: 'fpga', kernel: 'attention', memory: 'hbm' },
        variant: 'enhanced',
        fallback: [],
      },
      { id: 'y', index: 1, target: TARGET, variant: undefined, fallback: ['mtia'] },
      { id: 'z', index: 2, target: TARGET, variant: undefined, fallback: [] },
    ]);
    expect(
      [{ f: true, g: true }, { f: true }, { f: false, g: true }, {}].map((values) => decide(policy, values)),
    ).toEqual(['x', 'y', 'z', 'z']);
  });

  it('refuses a target without a memory domain on an accelerator that the fleet lacks', () => {
    const tree = [{ id: 'x', to: { accelerator: 'fpgaa', kernel: 'dense' } }];
    expect(() => compile(tree)).toThrow(
      'tree[0]: no memory domain is named, and the fleet "reference" lacks the accelerator (got "fpgaa"',
    );
    expect(() => compile(tree)).toThrow('Did you mean "fpga"?');
  });

  it.each<[string, Record<string, SignalValue>, boolean]>([
    ['a > 0.5', { a: 0.5 }, false],
    ['a > 0.5', { a: 0.5 + Number.EPSILON }, true],
    ['a < 0', { a: -0 }, false],
    ['a < 0', { a: -5e-324 }, true],
    ['a >= 0', { a: -0 }, true],
    ['0.5 < a', { a: 0.6 }, true],
    ['a > 1e308', { a: Number.POSITIVE_INFINITY }, true],
    ['a > 1.7976931348623157e308', { a: Number.POSITIVE_INFINITY }, true],
    ['a > 1e308 * 10', { a: Number.POSITIVE_INFINITY }, false],
    ['a >= 1e308 * 10', { a: Number.POSITIVE_INFINITY }, true],
    ['a != 1', { a: Number.NEGATIVE_INFINITY }, true],
    ['a != 1', { a: Number.NaN }, false],
    ['!(a > 1)', { a: Number.NaN }, false],
    ['!(a > 1)', {}, false],
    ['!(a in [])', { a: 1 }, true],
    ['!(a in [])', {}, false],
    ['a == b', { a: Number.POSITIVE_INFINITY, b: Number.POSITIVE_INFINITY }, true],
    ['a - b == 0', { a: Number.POSITIVE_INFINITY, b: Number.POSITIVE_INFINITY }, false],
    ['0 / 0 == 1 || !(0 / 0 == 1)', {}, false],
    ['s in ["eu", "us"]', { s: 'us' }, true],
    ['!(s in ["eu", "us"])', { s: 'ap' }, true],
    ['!(s in ["eu", "us"])', {}, false],
    ['s == t', { s: 'x', t: 'x' }, true],
    ['b > 1 || s == "eu"', { s: 'eu' }, true],
  ])('%s with %o is %s', (when, values, expected) => {
    expect(decide(conditionPolicy(when), values)).toBe(expected ? 'yes' : 'no');
  });

  it('reads the vector of its caller, by name, and says what is not in it', () => {
    const signalNames = ['other', 'n', 'a'];
    const policy = conditionPolicy('a > 1 && !(n > 1 && b > 1) || f', { signalNames });
    expect(policy.signalNames).toBe(signalNames);
    expect(policy.absentSignals).toEqual(['b', 'f']);
    expect(policy.decide(Float64Array.of(0, 0, 2))).toBe(0);
    expect(policy.decide(Float64Array.of(2, 2, 2))).toBe(1);
    expect(policy.decide(new Float64Array(0))).toBe(1);
    expect(conditionPolicy('a > 1').signalNames).toEqual(['a', 'b', 'n', 'm', 'f', 'g']);
  });

  it('takes nothing that an object inherits for a text', () => {
    const policy = compile(
      [
        { id: 'yes', when: 'toString != "x"', to: TARGET },
        { id: 'no', to: TARGET },
      ],
      {},
      { signals: { toString: 'string' } },
    );
    expect(policy.decide(new Float64Array(0), {})).toBe(1);
    expect(policy.decide(new Float64Array(0), { toString: 'y' } as never)).toBe(0);
    expect(policy.decide(new Float64Array(0))).toBe(1);
  });

  it('puts tuned constants in: its own defaults, the tuned values of the document, those of the caller', () => {
    const when = 'a > tune("k", 2, min: 1, max: 4, step: 1)';
    const tree = [
      { id: 'yes', when, to: TARGET },
      { id: 'no', to: TARGET },
    ];
    const values = [
      compile(tree),
      compile(tree, {}, { tuned: { k: 3 } }),
      compile(tree, { tuned: new Map([['k', 1]]) }, { tuned: { k: 3 } }),
    ];
    expect(values.map((policy) => policy.tunables.map(({ name, value }) => [name, value]))).toEqual([
      [['k', 2]],
      [['k', 3]],
      [['k', 1]],
    ]);
    expect(values.map((policy) => decide(policy, { a: 2.5 }))).toEqual(['yes', 'no', 'yes']);
    expect(() => compile(tree, { tuned: new Map([['k', 5]]) })).toThrow(
      'would leave its bounds (got 5; allowed: 1 … 4)',
    );
    expect(() => compile(tree, { tuned: new Map([['k', Number.NaN]]) })).toThrow(MillraceError);
    expect(() => compile(tree, { tuned: new Map([['kk', 2]]) })).toThrow('Did you mean "k"?');
  });

  it('agrees with the tree as it was written, on any policy and any request', () => {
    fc.assert(
      fc.property(
        trees(),
        fc.array(requests, { minLength: 1, maxLength: 20 }),
        fc.boolean(),
        (tree, corpus, tuned) => {
          const document = parsePolicy(JSON.stringify(policySource(tree)));
          const names = document.tunables.map(({ name, max }) => [name, max] as const);
          const policy = compilePolicy(document, tuned ? { tuned: new Map(names) } : {});
          const values = new Map(policy.tunables.map(({ name, value }) => [name, value]));
          const ids = leafBranches(document.tree).map(({ id }) => id);
          for (const request of corpus) {
            const byName = new Map(request);
            const { leaf } = decideStepwise(
              document,
              {
                number: (name) => Number(byName.get(name) ?? Number.NaN),
                text: (name) => byName.get(name)?.toString(),
              },
              values,
            );
            const { signals, context } = toSignalVector(policy, request);
            expect(ids[policy.decide(signals, context)]).toBe(leaf.id);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('decides every request, whatever is in the vector', () => {
    const anything = fc.float64Array({ maxLength: Object.keys(SIGNALS).length });
    fc.assert(
      fc.property(trees(), anything, (tree, signals) => {
        const policy = compile(tree);
        expect(policy.leaves[policy.decide(signals)]).toBeDefined();
      }),
    );
  });
});

describe('stepTunable', () => {
  const byPercent = {
    name: 'k',
    default: 100,
    min: 50,
    max: 120,
    step: { by: 'percent', size: 10 },
  } as const;
  const byAmount = { name: 'k', default: 0, min: -1, max: 1, step: { by: 'amount', size: 0.75 } } as const;

  it.each([
    [byPercent, 100, 'up', 110],
    [byPercent, 110, 'down', 100],
    [byPercent, 115, 'up', 120],
    [byPercent, 51, 'down', 50],
    [byAmount, 0, 'up', 0.75],
    [byAmount, 0.75, 'up', 1],
    [byAmount, 0, 'down', -0.75],
  ] as const)('%o at %f goes %s to %f', (tunable, value, direction, expected) => {
    expect(stepTunable(tunable, value, direction)).toBeCloseTo(expected, 12);
  });
});
