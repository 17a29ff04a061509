import { describe, expect, it } from 'vitest';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { describeProblem } from '../../../../src/core/policy/problem.ts';
import { type KnownSignal, validateParts, validatePolicy } from '../../../../src/core/policy/validate.ts';
import { policySource, TARGET } from './arbitraries.ts';

function validate(
  tree: readonly unknown[],
  extra: Record<string, unknown> = {},
  known: readonly KnownSignal[] = [],
): string[] {
  const leaves = JSON.stringify(tree).match(/"to"/g)?.length ?? 0;
  const document = parsePolicy(JSON.stringify({ ...policySource(tree), signals: { a: 'double' }, ...extra }));
  return validatePolicy(document, REFERENCE_FLEET, known)
    .filter((problem) => leaves > 0 && problem.what !== 'no golden test ends in these leaves')
    .map((problem) => `${problem.severity} ${describeProblem({ ...problem, position: undefined })}`);
}

const rest = { id: 'rest', to: TARGET };
const branch = (to: Record<string, unknown>, more: Record<string, unknown> = {}) => [
  { id: 'x', when: 'a > 1', to, ...more },
  rest,
];

describe('validatePolicy', () => {
  it.each([
    [
      branch({ ...TARGET, accelerator: 'gpu-a10' }),
      'error tree[0].to.accelerator: unknown accelerator in the fleet "reference" (got "gpu-a10"; allowed: gpu-v100, gpu-a100, mtia, fpga, cpu). Did you mean "gpu-a100"?',
    ],
    [
      branch({ accelerator: 'fpga', kernel: 'sparse' }),
      'error tree[0].to.kernel: unknown kernel of fpga in the fleet "reference" (got "sparse"; allowed: dense, attention)',
    ],
    [
      branch({ accelerator: 'mtia', kernel: 'dense', memory: 'host' }),
      'error tree[0].to.memory: unknown memory domain of mtia in the fleet "reference" (got "host"; allowed: hbm, l2)',
    ],
    [
      branch(TARGET, { fallback: ['mtia', 'npu-x'] }),
      'error tree[0].fallback[1]: unknown accelerator in the fleet "reference" (got "npu-x"; allowed: gpu-v100, gpu-a100, mtia, fpga, cpu)',
    ],
    [
      branch({ accelerator: 'fpga', kernel: 'attention' }, { fallback: ['mtia'] }),
      'warning tree[0].fallback[0]: the fallback lacks the kernel attention, so it would run another (got "mtia"; allowed: dense, sparse, bias-fused)',
    ],
    [
      [{ id: 'x', when: 'a > 1 && a < 0', to: TARGET }, rest],
      'error tree[0].when: no request reaches the branch x: its conditions contradict each other (got "a > 1 && a < 0")',
    ],
    [
      [{ id: 'x', when: 'a > 1', to: TARGET }, { id: 'y', when: 'a > 2', to: TARGET }, rest],
      'error tree[1]: no request reaches the branch y: x takes all of them before (got "a > 2")',
    ],
  ])('%#: %o', (tree, expected) => {
    expect(validate(tree)).toEqual([expected]);
  });

  it('tells 50 errors and 50 warnings at most, and no warnings hide an error', () => {
    const unread = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`unread${at}`, 'int']));
    const tests = Array.from({ length: 200 }, () => ({ signals: {}, leaf: 'x' }));
    const found = validate(branch(TARGET), { signals: { a: 'double', ...unread }, tests });
    expect(found.filter((each) => each.startsWith('warning'))).toHaveLength(50);
    expect(found.filter((each) => each.startsWith('error'))).toHaveLength(50);
    expect(found.at(-1)).toMatch(/^error tests\[49\]: a golden test fails/);
  });

  it('explains a failing golden test by the last branches that it came by', () => {
    const long = Array.from({ length: 300 }, (_, at) => ({ id: `x${at}`, when: `a == ${at}`, to: TARGET }));
    const [failed] = validate([...long, rest], { tests: [{ signals: { a: 1_000 }, leaf: 'x0' }] });
    expect(failed).toMatch(/^error tests\[0\].*293 branches were not taken; x293: a == 293 → false/);
    expect(failed).toMatch(/leaf: rest$/);
    expect(failed?.length).toBeLessThan(800);
  });

  it('names no more than 20 branches that take everything from another', () => {
    const every = Array.from({ length: 60 }, (_, at) => ({ id: `b${at}`, when: `n == ${at}`, to: TARGET }));
    const last = { id: 'last', when: 'n in [1, 30, 59]', to: TARGET };
    const wide = { id: 'wide', when: `n >= 0 && n <= 59`, to: TARGET };
    const [one, other] = validate([...every, last, wide, rest], { signals: { n: 'int' } });
    expect(one).toMatch(/reaches the branch last: b1, b30, b59 takes all/);
    expect(other).toMatch(/reaches the branch wide: b0, .*b19 and 40 more takes all/);
  });

  it('looks at reachability with the constants in force', () => {
    const tree = [{ id: 'x', when: 'a > tune("k", 2, min: 0, max: 4, step: 1) && a < 3', to: TARGET }, rest];
    expect(validate(tree)).toEqual([]);
    expect(validate(tree, { tuned: { k: 3 } })).toHaveLength(1);
  });

  it('runs the golden tests, and explains one that fails', () => {
    const tests = [
      { signals: { a: 2 }, leaf: 'x' },
      { signals: { a: 1 }, leaf: 'x' },
      { signals: {}, leaf: 'rest' },
    ];
    expect(validate(branch(TARGET), { tests })).toEqual([
      'error tests[1]: a golden test fails: the policy takes it to the leaf rest, the test says x. x: a > 1 → false (a = 1); rest: no condition → taken; leaf: rest',
    ]);
  });

  it.each([
    ['a kernel', { ...TARGET, kernel: 'denze' }, 1],
    ['an accelerator', { accelerator: 'gpu-a10', kernel: 'dense' }, 1],
  ])('runs the golden tests where the fleet lacks %s too', (_what, to, errors) => {
    const found = validate(branch(to), { tests: [{ signals: { a: 1 }, leaf: 'x' }] });
    expect(found).toHaveLength(errors + 1);
    expect(found.at(-1)).toMatch(
      /^error tests\[0\]: a golden test fails: the policy takes it to the leaf rest/,
    );
  });

  it('warns of a text that no request carries, whatever else is wrong', () => {
    const source = {
      ...policySource(branch(TARGET)),
      signals: { a: 'double', tier: 'string', plan: 'string' },
    };
    const document = parsePolicy(JSON.stringify(source));
    const texts = new Set(['tier', 'region']);
    const found = [
      validatePolicy(document, REFERENCE_FLEET, [], texts),
      validateParts(document, REFERENCE_FLEET, [], texts),
    ].map((problems) => problems.filter(({ what }) => what.startsWith('no request carries')));
    const warning = { severity: 'warning', path: 'signals.plan', value: 'plan', allowed: 'tier, region' };
    expect(found).toMatchObject([[warning], [warning]]);
  });

  it('names the leaves that no golden test ends in', () => {
    const document = parsePolicy(
      JSON.stringify({
        ...policySource(branch(TARGET)),
        signals: { a: 'double' },
        tests: [{ signals: { a: 2 }, leaf: 'x' }],
      }),
    );
    expect(validatePolicy(document)).toMatchObject([{ severity: 'warning', value: 'rest', path: 'tests' }]);
  });

  it('says where, by line', () => {
    const document = parsePolicy(
      JSON.stringify(policySource(branch({ ...TARGET, kernel: 'denze' })), null, 2),
    );
    const [problem] = validatePolicy(document).filter(({ severity }) => severity === 'error');
    expect(problem).toMatchObject({
      path: 'tree[0].to.kernel',
      position: { line: 22, column: 19 },
      advice: 'Did you mean "dense"?',
    });
  });

  it('holds signals to the table of those that the extractor computes', () => {
    const known: KnownSignal[] = [
      { name: 'a', type: 'double', costBudgetUs: 101 },
      { name: 'n', type: 'int', costBudgetUs: 100 },
      { name: 'sequenceLength', type: 'int', costBudgetUs: 200 },
    ];
    const signals = {
      a: 'double',
      n: 'bool',
      sequenceLength: 'double',
      sequenceLenght: 'int',
      hint: 'double',
    };
    expect(
      validate(
        [{ id: 'x', when: 'a > 1 && n && sequenceLenght > 1 && hint > 1', to: TARGET }, rest],
        { signals },
        known,
      ),
    ).toEqual([
      'error signals.a: the signal costs too much (got "101 µs"; allowed: at most 100 µs a request)',
      'error signals.n: the signal has another type (got "bool"; allowed: int)',
      'warning signals.sequenceLength: no condition reads this signal (got "sequenceLength")',
      'warning signals.sequenceLenght: not a signal that the extractor computes (got "sequenceLenght"). It is taken for a hint of the producer\'s. Did you mean "sequenceLength"?',
    ]);
  });
});
