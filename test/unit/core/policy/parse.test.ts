import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify, type ToStringOptions } from 'yaml';
import { MillraceError } from '../../../../src/core/errors.ts';
import { DEFAULT_ROLLOUT, type PolicyDocument } from '../../../../src/core/policy/document.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { DocumentError, describeProblem } from '../../../../src/core/policy/problem.ts';
import { conditions, policySource, TARGET, trees } from './arbitraries.ts';

const HEAD = 'apiVersion: millrace/v1\nkind: RoutingPolicy\nname: p\nversion: 1\n';
const LEAF = 'to: {accelerator: cpu, kernel: dense, memory: host}';
const TREE = `tree:\n  - id: rest\n    ${LEAF}\n`;

function documentErrorOf(text: string): DocumentError {
  try {
    parsePolicy(text);
  } catch (error) {
    if (error instanceof DocumentError) return error;
    throw error;
  }
  throw new Error('the policy was not refused');
}

function problemsOf(text: string): string[] {
  const { code, problems } = documentErrorOf(text);
  expect(code).toBe('INVALID_POLICY');
  return problems.map(({ path, position, what }) => `${path} ${position?.line ?? '-'}: ${what}`);
}

function withoutPositions(document: PolicyDocument): unknown {
  return { ...document, positions: undefined };
}

/** Without anchors for objects that occur twice. */
function yaml(source: unknown, options: ToStringOptions = {}): string {
  return stringify(source, { ...options, aliasDuplicateObjects: false });
}

describe('parsePolicy', () => {
  it('reads every field', () => {
    const document = parsePolicy(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed-router
version: 42
parent: sha256:${'9c'.repeat(32)}
signals: {sparsityRatio: double, predictedCostMs: double, attentionHeadVariance: double, sequenceLength: int}
expect: {changedShare: [0.10, 0.14], leaves: [fpga]}
tuned: {floor: 0.8}
tree:
  - id: sparse
    when: 'sparsityRatio > tune("floor", 0.7, min: 0.5, max: 0.9, step: 0.05) && predictedCostMs < 0.5'
    to: {accelerator: gpu-a100, kernel: sparse, memory: l2}
  - id: fpga
    when: attentionHeadVariance > 0.9 && sequenceLength > 256
    to: {accelerator: fpga, kernel: attention}
  - id: others
    tree:
      - id: rest
        to: {accelerator: gpu-a100, kernel: dense, memory: hbm, variant: baseline}
        fallback: [gpu-v100]
tests:
  - {signals: {sparsityRatio: 0.9, predictedCostMs: 0.2, attentionHeadVariance: 0, sequenceLength: 8}, leaf: sparse}
rollout: {shadow: 90s, canary: {percent: 2.5, dwell: 500ms}, ramp: [10, 50], rampDwell: 1h, unit: requestId}
`);
    expect(document).toMatchObject({
      name: 'feed-router',
      version: 42,
      parent: `sha256:${'9c'.repeat(32)}`,
      tunables: [{ name: 'floor', default: 0.7, min: 0.5, max: 0.9, step: { by: 'amount', size: 0.05 } }],
      expect: { changedShare: [0.1, 0.14], leaves: ['fpga'] },
      rollout: {
        shadowMs: 90_000,
        canary: { percent: 2.5, dwellMs: 500 },
        rampPercents: [10, 50],
        rampDwellMs: 3_600_000,
        unit: 'requestId',
      },
    });
    expect([...document.signals]).toContainEqual(['sequenceLength', 'int']);
    expect([...document.tuned]).toEqual([['floor', 0.8]]);
    expect(document.tree).toMatchObject([
      { kind: 'leaf', id: 'sparse', path: 'tree[0]', when: { reads: ['sparsityRatio', 'predictedCostMs'] } },
      {
        kind: 'leaf',
        id: 'fpga',
        to: { accelerator: 'fpga', kernel: 'attention', memory: undefined },
        fallback: [],
      },
      {
        kind: 'tree',
        id: 'others',
        tree: [{ id: 'rest', to: { variant: 'baseline' }, fallback: ['gpu-v100'] }],
      },
    ]);
    expect(document.tests).toMatchObject([{ leaf: 'sparse', path: 'tests[0]' }]);
    expect(document.positions.get('tree[1].to.kernel')).toEqual({ line: 16, column: 37 });
  });

  it('fills in the default rollout, without ramp steps at or below the canary', () => {
    expect(parsePolicy(HEAD + TREE).rollout).toEqual(DEFAULT_ROLLOUT);
    const { rollout } = parsePolicy(`${HEAD}${TREE}rollout: {canary: {percent: 25}}`);
    expect(rollout).toEqual({
      ...DEFAULT_ROLLOUT,
      canary: { percent: 25, dwellMs: 900_000 },
      rampPercents: [50],
    });
  });

  it('takes golden tests with missing and with NaN signals', () => {
    const { tests } = parsePolicy(
      `${HEAD}signals: {a: double}\n${TREE}tests: [{signals: {a: .nan}, leaf: rest}, {signals: {}, leaf: rest}]`,
    );
    expect(tests.map((test) => [...test.signals])).toEqual([[['a', Number.NaN]], []]);
  });

  it('reads JSON with tabs, and bytes', () => {
    const source = policySource([{ id: 'rest', to: TARGET }]);
    const fromBytes = parsePolicy(new TextEncoder().encode(JSON.stringify(source, null, '\t')));
    expect(withoutPositions(fromBytes)).toEqual(withoutPositions(parsePolicy(yaml(source))));
  });

  it.each([
    ['a list', '- 1', [' 1: something else is expected here']],
    [
      'missing fields',
      '{}',
      ['apiVersion', 'kind', 'name', 'version', 'tree'].map((name) => ` 1: the field \`${name}\` is missing`),
    ],
    [
      'another kind',
      `${HEAD.replace('RoutingPolicy', 'Policy')}${TREE}`,
      ['kind 2: not one of the names allowed here'],
    ],
    [
      'another version of the API',
      `${HEAD.replace('v1', 'v2')}${TREE}`,
      ['apiVersion 1: not one of the names allowed here'],
    ],
    [
      'a name with a space',
      `${HEAD.replace('name: p', 'name: p q')}${TREE}`,
      ['name 3: not what is expected here'],
    ],
    [
      'a broken version',
      `${HEAD.replace('version: 1', 'version: 1.5')}${TREE}`,
      ['version 4: a number out of bounds'],
    ],
    [
      'a huge version',
      `${HEAD.replace('version: 1', 'version: 2147483648')}${TREE}`,
      ['version 4: a number out of bounds'],
    ],
    ['a broken digest', `${HEAD}parent: sha256:9c1\n${TREE}`, ['parent 5: not what is expected here']],
    ['an unknown field', `${HEAD}trees: []\n${TREE}`, ['trees 5: an unknown field']],
    [
      'an unknown type',
      `${HEAD}signals: {a: float}\n${TREE}`,
      ['signals.a 5: not one of the names allowed here'],
    ],
    [
      'a reserved word',
      `${HEAD}signals: {tune: int}\n${TREE}`,
      ['signals.tune 5: not a name that a condition could read'],
    ],
    [
      'names that no record may have as a key',
      `${HEAD}tree: [{id: constructor, to: {accelerator: prototype, kernel: dense, memory: host}}]`,
      ['tree[0].id 5: not what is expected here', 'tree[0].to.accelerator 5: not what is expected here'],
    ],
    [
      'a tunable constant that `tuned` could not name',
      `${HEAD}signals: {a: int}\ntree: [{id: x, when: 'a > tune("constructor", 1, min: 0, max: 2, step: 1)', ${LEAF}}, {id: y, ${LEAF}}]`,
      [
        'tree[0].when 6: this is not a tunable constant: its name is a quoted text that begins with a letter, and not constructor or prototype',
      ],
    ],
    ['no branches', `${HEAD}tree: []`, ['tree 5: a list of branches is empty']],
    [
      'a list that is not total',
      `${HEAD}signals: {f: bool}\ntree: [{id: x, when: f, ${LEAF}}]`,
      ['tree[0] 6: the last branch of a list has a condition, so some requests would reach no leaf'],
    ],
    [
      'an inner list that is not total',
      `${HEAD}signals: {f: bool}\ntree: [{id: x, tree: [{id: y, when: f, ${LEAF}}]}]`,
      ['tree[0].tree[0] 6: the last branch of a list has a condition, so some requests would reach no leaf'],
    ],
    ['a branch that leads nowhere', `${HEAD}tree: [{id: x}]`, ['tree[0] 5: a branch leads nowhere']],
    [
      'a branch that leads to two places',
      `${HEAD}tree: [{id: x, ${LEAF}, tree: [{id: y, ${LEAF}}]}]`,
      ['tree[0] 5: a branch has both a target and branches of its own'],
    ],
    [
      'the same id twice',
      `${HEAD}tree: [{id: x, tree: [{id: x, ${LEAF}}]}]`,
      ['tree[0].tree[0].id 5: the same branch id twice'],
    ],
    [
      'a condition that is not a text',
      `${HEAD}tree: [{id: x, when: [a], ${LEAF}}, {id: y, ${LEAF}}]`,
      ['tree[0].when 5: a condition is expected here'],
    ],
    [
      'an empty condition',
      `${HEAD}tree: [{id: x, when: , ${LEAF}}, {id: y, ${LEAF}}]`,
      ['tree[0].when 5: a condition is expected here'],
    ],
    [
      'an undeclared signal',
      `${HEAD}tree: [{id: x, when: a > 1, ${LEAF}}, {id: y, ${LEAF}}]`,
      ['tree[0].when 5: a signal that is not declared under `signals`'],
    ],
    [
      'a target without a kernel',
      `${HEAD}tree: [{id: x, to: {accelerator: cpu}}]`,
      ['tree[0].to 5: the field `kernel` is missing'],
    ],
    [
      'an unknown variant',
      `${HEAD}tree: [{id: x, to: {accelerator: cpu, kernel: dense, variant: best}}]`,
      ['tree[0].to.variant 5: not one of the names allowed here'],
    ],
    [
      'too many fallbacks',
      `${HEAD}tree: [{id: x, ${LEAF}, fallback: [a, b, c, d, e, f, g, h, i]}]`,
      ['tree[0].fallback 5: too many fallbacks'],
    ],
    [
      'a test of an unknown leaf',
      `${HEAD}${TREE}tests: [{signals: {}, leaf: rset}]`,
      ['tests[0].leaf 8: not one of the names allowed here'],
    ],
    [
      'a test of an undeclared signal',
      `${HEAD}${TREE}tests: [{signals: {a: 1}, leaf: rest}]`,
      ['tests[0].signals.a 8: a signal that is not declared under `signals`'],
    ],
    [
      'a test with values of the wrong types',
      `${HEAD}signals: {a: double, n: int, f: bool, s: string}\n${TREE}tests: [{signals: {a: x, n: 0.5, f: 1, s: 2}, leaf: rest}]`,
      [
        'tests[0].signals.a 9: the signal is a number',
        'tests[0].signals.n 9: a number out of bounds',
        'tests[0].signals.f 9: something else is expected here',
        'tests[0].signals.s 9: the signal is a string',
      ],
    ],
    [
      'an expectation of an unknown leaf',
      `${HEAD}${TREE}expect: {leaves: [other]}`,
      ['expect.leaves[0] 8: not one of the names allowed here'],
    ],
    [
      'a share upside down',
      `${HEAD}${TREE}expect: {changedShare: [0.5, 0.1]}`,
      ['expect.changedShare 8: a share is given by its bounds'],
    ],
    [
      'a share of one number',
      `${HEAD}${TREE}expect: {changedShare: [0.5]}`,
      ['expect.changedShare 8: a share is given by its bounds'],
    ],
    [
      'a tuned constant that is none',
      `${HEAD}${TREE}tuned: {x: 1}`,
      ['tuned.x 8: no condition has a tunable constant of this name'],
    ],
    [
      'a duration without a unit',
      `${HEAD}${TREE}rollout: {shadow: 15}`,
      ['rollout.shadow 8: something else is expected here'],
    ],
    [
      'a duration of a year',
      `${HEAD}${TREE}rollout: {shadow: 365d}`,
      ['rollout.shadow 8: a duration too long'],
    ],
    [
      'a falling ramp',
      `${HEAD}${TREE}rollout: {ramp: [10, 10]}`,
      ['rollout.ramp 8: a ramp rises from step to step, and from the canary'],
    ],
    [
      'a ramp below the canary',
      `${HEAD}${TREE}rollout: {canary: {percent: 20}, ramp: [10, 30]}`,
      ['rollout.ramp 8: a ramp rises from step to step, and from the canary'],
    ],
    [
      'an unknown unit',
      `${HEAD}${TREE}rollout: {unit: user}`,
      ['rollout.unit 8: not one of the names allowed here'],
    ],
  ])('refuses %s, and says where', (_, text, expected) => {
    expect(problemsOf(text)).toEqual(expected);
  });

  it('refuses a tuned value out of bounds, and one constant with two meanings', () => {
    const tune = (initial: number) => `'a > tune("k", ${initial}, min: 0, max: 5, step: 1)'`;
    const tree = `signals: {a: double}\ntree:\n  - {id: x, when: ${tune(1)}, ${LEAF}}\n  - {id: y, when: ${tune(2)}, ${LEAF}}\n  - {id: z, ${LEAF}}\n`;
    expect(problemsOf(`${HEAD}${tree}tuned: {k: 6}`)).toEqual([
      'tree[1].when 8: the same tunable constant with other numbers',
      'tuned.k 10: a number out of bounds',
    ]);
  });

  it('finds every problem at once, and names the nearest allowed word', () => {
    const text = `${HEAD}signals: {sparsityRatio: double}\ntree:\n  - id: x\n    wen: sparsityRatio > 1\n    ${LEAF}\n  - id: y\n    when: sparsityratio > 1\n    ${LEAF}\n  - id: z\n    ${LEAF}\n`;
    expect(() => parsePolicy(text)).toThrow(
      'tree[0].wen, line 8, column 10: an unknown field (got "wen"; allowed: id, when, to, fallback, tree). Did you mean "when"? (and 1 more)',
    );
    try {
      parsePolicy(text);
    } catch (error) {
      expect((error as DocumentError).problems[1]).toMatchObject({
        path: 'tree[1].when',
        position: { line: 11, column: 11 },
        value: 'sparsityratio',
        allowed: 'sparsityRatio',
        advice: 'Did you mean "sparsityRatio"?',
      });
    }
  });

  describe('tells at most 50 problems, each in a line or two, of a document with', () => {
    const many = (of: (index: number) => string): string =>
      Array.from({ length: 500 }, (_, at) => of(at)).join(', ');
    const signals = `signals: {${many((at) => `signal${at}: int`)}}\n`;
    it.each([
      ['unknown fields', `${HEAD}${TREE}x: {}\n${many((at) => `"f${at}": 1\n`).replaceAll(', ', '')}`],
      [
        'tests of undeclared signals',
        `${HEAD}${signals}${TREE}tests: [{signals: {${many((at) => `sgnal${at}: 1`)}}, leaf: rest}]`,
      ],
      ['tests of unknown leaves', `${HEAD}${TREE}tests: [${many((at) => `{signals: {}, leaf: l${at}}`)}]`],
      ['broken documents', `a: b: c\n---\n`.repeat(60)],
      ['the same keys twice', `${HEAD}${TREE}tuned: {${many(() => 'a: 1')}}`],
      [
        'conditions on undeclared signals',
        `${HEAD}${signals}tree: [${many((at) => `{id: x${at}, when: "zz == 1 && sgnal == 2", ${LEAF}}`)}, {id: y, ${LEAF}}]`,
      ],
      [
        'one condition on undeclared signals',
        `${HEAD}${signals}tree: [{id: x, when: "${Array.from({ length: 60 }, (_, at) => `z${at} > 1`).join(' || ')}", ${LEAF}}, {id: y, ${LEAF}}]`,
      ],
    ])('%s', (_, text) => {
      const found = documentErrorOf(text).problems;
      expect(found).toHaveLength(50);
      for (const problem of found) expect(describeProblem(problem).length).toBeLessThan(500);
    });
  });

  it('reads the same policy from YAML and from JSON', () => {
    fc.assert(
      fc.property(trees(), (tree) => {
        const source = policySource(tree);
        const json = parsePolicy(JSON.stringify(source));
        expect(withoutPositions(parsePolicy(yaml(source)))).toEqual(withoutPositions(json));
        expect(withoutPositions(parsePolicy(yaml(source, { defaultStringType: 'QUOTE_SINGLE' })))).toEqual(
          withoutPositions(json),
        );
      }),
      { numRuns: 50 },
    );
  });
});

describe('parsePolicy on anything at all', () => {
  const starter = readFileSync(
    new URL('../../../../examples/policies/starter.yaml', import.meta.url),
    'utf8',
  );
  const soup = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          ...':-?,[]{}&*!|>%@#"\'\n\t',
          '  ',
          ': ',
          '- ',
          '? ',
          '\n  ',
          '---\n',
          '...\n',
          '<<',
          '\\',
          '\u0000',
          '\uFEFF',
          '\uD800',
        ),
        fc.constantFrom(
          '__proto__',
          'constructor',
          'prototype',
          'toString',
          'tree',
          'id',
          'when',
          'to',
          'signals',
          'tests',
          'rollout',
        ),
        fc.constantFrom(
          '&a',
          '*a',
          '!!js/function',
          '!<x>',
          '%YAML 1.1',
          'tune(',
          '.nan',
          '0x',
          '1e999',
          'true',
          'null',
          '~',
          '99999999999999999999',
        ),
        conditions,
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join(''));
  const mutants = fc
    .tuple(fc.nat(starter.length), fc.nat(40), fc.oneof(soup, fc.string()))
    .map(([at, removed, inserted]) => starter.slice(0, at) + inserted + starter.slice(at + removed));
  const bytes = fc.uint8Array({ maxLength: 400 });

  it('throws nothing but a MillraceError, and leaves Object.prototype alone', () => {
    const before = Object.getOwnPropertyNames(Object.prototype).sort().join();
    fc.assert(
      fc.property(fc.oneof(soup, mutants, bytes, fc.string(), fc.json()), (input) => {
        try {
          const document = parsePolicy(input);
          expect(Object.getPrototypeOf(document)).toBe(Object.prototype);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
          expect((error as MillraceError).code).toBe('INVALID_POLICY');
          expect((error as DocumentError).problems.length).toBeGreaterThan(0);
        }
        expect(Object.getOwnPropertyNames(Object.prototype).sort().join()).toBe(before);
      }),
      { numRuns: 1_000 },
    );
  });
});
