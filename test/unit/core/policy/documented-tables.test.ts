import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CONDITION_LIMITS, readCondition } from '../../../../src/core/policy/condition.ts';
import { parsePolicy, readPolicyDocument } from '../../../../src/core/policy/parse.ts';
import { parseFleet } from '../../../../src/core/policy/parse-fleet.ts';
import { DocumentError, type PolicyProblem } from '../../../../src/core/policy/problem.ts';
import { DOCUMENT_LIMITS } from '../../../../src/core/policy/source.ts';
import { validatePolicy } from '../../../../src/core/policy/validate.ts';

const page = readFileSync(new URL('../../../../docs/policy-language.md', import.meta.url), 'utf8');
/** Figures as the page writes them, and however its lines are broken. */
const prose = page.replaceAll(/\s+/g, ' ');

type Row = readonly string[];

/** The rows of the table with this heading, cell by cell. */
function table(heading: string): Row[] {
  const lines = page.split('\n');
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`no table ${heading}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  return lines.slice(start + 2, start + length).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|')),
  );
}

/** What stands in back quotes. */
const words = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word ?? '');

/** A policy with everything that has fields, on one line, so that a field can be put in or left out anywhere. */
const whole = (): Record<string, unknown> => ({
  apiVersion: 'millrace/v1',
  kind: 'RoutingPolicy',
  name: 'whole',
  version: 1,
  parent: `sha256:${'0'.repeat(64)}`,
  signals: { a: 'double' },
  tuned: { floor: 1 },
  models: { ranker: { baseline: '1', enhanced: '2' } },
  expect: { changedShare: [0, 1], leaves: ['one'] },
  tree: [
    { id: 'one', when: 'a > tune("floor", 1, min: 0, max: 2, step: 1)', to: target(), fallback: ['cpu'] },
    { id: 'more', tree: [{ id: 'two', to: target() }] },
  ],
  tests: [{ signals: { a: 2 }, leaf: 'one' }],
  rollout: {
    shadow: '1m',
    canary: { percent: 1, dwell: '1m' },
    ramp: [2],
    rampDwell: '1m',
    unit: 'requestId',
    guardrails: {
      scorePsi: 1,
      scoreMeanShift: 1,
      queries: [{ name: 'q', query: 'up', min: 0, max: 1, for: '1m', breach: 'hold' }],
    },
  },
});

const target = () => ({ accelerator: 'cpu', kernel: 'dense', memory: 'host', variant: 'baseline' });

const fleet = (): Record<string, unknown> => ({
  apiVersion: 'millrace/v1',
  kind: 'Fleet',
  name: 'whole',
  accelerators: {
    cpu: {
      kernels: ['dense'],
      memories: ['host'],
      pools: [{ pool: 'cpu', capacityClass: 'dedicated', simulated: true }],
    },
  },
});

function problemsOfPolicy(document: unknown): readonly PolicyProblem[] {
  return readPolicyDocument(JSON.stringify(document)).problems;
}

function problemsOfFleet(document: unknown): readonly PolicyProblem[] {
  try {
    parseFleet(JSON.stringify(document));
    return [];
  } catch (error) {
    if (error instanceof DocumentError) return error.problems;
    throw error;
  }
}

/** The map at a path such as `tree.0.to`. */
function at(document: Record<string, unknown>, path: string): Record<string, unknown> {
  const steps = path === '' ? [] : path.split('.');
  return steps.reduce((here, step) => here[step] as Record<string, unknown>, document);
}

interface Place {
  problems(document: unknown): readonly PolicyProblem[];
  document(): Record<string, unknown>;
  path: string;
}

const inPolicy = (path: string): Place => ({ problems: problemsOfPolicy, document: whole, path });
const inFleet = (path: string): Place => ({ problems: problemsOfFleet, document: fleet, path });

/** The fields that the parser knows at a place: it names them where it finds another one. */
function fieldsAt({ problems, document, path }: Place): string[] {
  const made = document();
  at(made, path)['nobodyKnowsThis'] = 1;
  const found = problems(made).find(({ what }) => what === 'an unknown field');
  return found?.allowed?.split(', ') ?? [];
}

function isOptional({ problems, document, path }: Place, field: string): boolean {
  const made = document();
  delete at(made, path)[field];
  return !problems(made).some(({ what }) => what === `the field \`${field}\` is missing`);
}

const FIELDS = table('| field | meaning |');
const TARGET = tableAfter('A target (`to`) has');
const ROLLOUT = table('| `rollout` | default | meaning |');

function tableAfter(sentence: string): Row[] {
  const rest = page.slice(page.indexOf(sentence));
  const rows = rest.split('\n').slice(2);
  const length = rows.findIndex((line) => !line.startsWith('|'));
  return rows.slice(2, length).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

const names = (rows: readonly Row[]): string[] => rows.flatMap(([name]) => words(name));

describe('the tables of docs/policy-language.md', () => {
  it('are of a policy and a fleet that the parser takes as they are', () => {
    expect(problemsOfPolicy(whole())).toEqual([]);
    expect(problemsOfFleet(fleet())).toEqual([]);
  });

  it.each([
    ['a policy', FIELDS, inPolicy('')],
    ['a target', TARGET, inPolicy('tree.0.to')],
  ])('have each field of %s that the parser knows, and no other', (_what, rows, place) => {
    expect(names(rows).toSorted()).toEqual(fieldsAt(place).toSorted());
  });

  it('have each field of a rollout that the parser knows, and no other', () => {
    const canary = fieldsAt(inPolicy('rollout.canary')).map((field) => `canary.${field}`);
    const known = [...fieldsAt(inPolicy('rollout')).filter((field) => field !== 'canary'), ...canary];
    expect(names(ROLLOUT).toSorted()).toEqual(known.toSorted());
  });

  it.each([
    ...FIELDS.map((row) => [row, inPolicy('')] as const),
    ...TARGET.map((row) => [row, inPolicy('tree.0.to')] as const),
  ])('say of %s whether it can be left out', ([name, meaning = ''], place) => {
    for (const field of words(name))
      expect(/^optional: |without it/.test(meaning), field).toBe(isOptional(place, field));
  });

  it('have the defaults of a rollout that says nothing', () => {
    const defaults = new Map(
      ROLLOUT.flatMap(([name, values]) => {
        const each = words(values);
        return words(name).map((field, index) => [field, each[index]] as const);
      }),
    );
    expect(defaults.get('guardrails')).toBeUndefined();
    const written = [...defaults].filter(([field, value]) => value !== undefined && !field.includes('.'));
    const canary = ['percent', 'dwell'].map((field) => `${field}: ${defaults.get(`canary.${field}`)}`);
    const rollout = [...written.map(([field, value]) => `${field}: ${value}`), `canary: {${canary.join()}}`];
    const without = { ...whole(), rollout: undefined };
    const text = JSON.stringify(without).replace(/}$/, `, "rollout": {${rollout.join()}}}`);
    expect(parsePolicy(text).rollout).toEqual(parsePolicy(JSON.stringify(without)).rollout);
    expect(written.length + canary.length + 1).toBe(defaults.size);
  });

  it.each([
    ['a branch', inPolicy('tree.0')],
    ['a golden test', inPolicy('tests.0')],
    ['an expectation', inPolicy('expect')],
    ['the versions of a family', inPolicy('models.ranker')],
    ['guardrails', inPolicy('rollout.guardrails')],
    ['a query', inPolicy('rollout.guardrails.queries.0')],
    ['a fleet', inFleet('')],
    ['an accelerator class', inFleet('accelerators.cpu')],
    ['a pool', inFleet('accelerators.cpu.pools.0')],
  ])('or its text and examples have each field of %s', (_what, place) => {
    const fields = fieldsAt(place);
    expect(fields.length).toBeGreaterThan(1);
    for (const field of fields) expect(page).toMatch(new RegExp(`\`${field}\`|\\b${field}:\\s`));
  });
});

const SIGNALS = parsePolicy(
  JSON.stringify({
    ...whole(),
    signals: {
      a: 'double',
      b: 'double',
      n: 'int',
      premium: 'bool',
      known: 'bool',
      region: 'string',
      home: 'string',
    },
  }),
).signals;
const isCondition = (text: string): boolean => readCondition(text, SIGNALS).problems.length === 0;

/** Whatever CEL has, and a little more: what the parser takes of it between operands of a kind. */
const OPERATORS = [
  '&&',
  '||',
  '<',
  '<=',
  '>',
  '>=',
  '==',
  '!=',
  '=',
  '=~',
  '+',
  '-',
  '*',
  '/',
  '%',
  '**',
  '&',
  '|',
  '^',
  '<<',
  '?:',
  '??',
];

const KINDS: Readonly<Record<string, { operators: readonly string[]; uses(operator: string): string[] }>> = {
  boolean: {
    operators: [
      ...OPERATORS.filter((each) => !['==', '!='].includes(each)),
      '!',
      'true',
      'false',
      'null',
      'parentheses',
    ],
    uses: (operator) => {
      if (operator === '!') return ['!premium'];
      if (operator === 'parentheses') return ['(premium)', '(premium && known) || premium'];
      return /^\w/.test(operator) ? [operator] : [`premium ${operator} known`, `a > 1 ${operator} b > 1`];
    },
  },
  numbers: { operators: OPERATORS, uses: (operator) => [`n ${operator} 2`, `n ${operator} 2 > 0`] },
  lists: {
    operators: ['in', 'not in', 'contains'],
    uses: (operator) => [`n ${operator} [1, 2]`, `region ${operator} ["eu"]`],
  },
  texts: {
    operators: [...OPERATORS, 'in'],
    uses: (operator) => [`region ${operator} ${operator === 'in' ? '["eu"]' : 'home'}`],
  },
  flags: {
    operators: [...OPERATORS.filter((each) => !['&&', '||'].includes(each)), 'true', 'false', '1', 'null'],
    uses: (operator) => (/^\w/.test(operator) ? [`known == ${operator}`] : [`known ${operator} premium`]),
  },
};

describe('the table of conditions', () => {
  const rows = table('| | |');

  it('has a row for each kind of operand', () => {
    expect(rows.map(([kind]) => kind)).toEqual(Object.keys(KINDS));
  });

  it.each(rows.map(([kind = '', cell = '']) => [kind, cell] as const))(
    'has all that the parser takes of %s, and nothing else',
    (kind, cell) => {
      const { operators, uses } = KINDS[kind] ?? { operators: [], uses: () => [] };
      const taken = operators.filter((operator) => uses(operator).some(isCondition));
      const said = [...words(cell), ...(cell.includes('parentheses') ? ['parentheses'] : [])];
      expect(said.toSorted()).toEqual(taken.toSorted());
    },
  );

  it('says of `%` and of lists what they are for', () => {
    expect(
      ['n % 2 == 0', 'a % 2 == 0', 'n in [1, 2]', 'n in [n]', 'region in [home]'].map(isCondition),
    ).toEqual([true, false, true, false, false]);
  });
});

describe('the table of what is missing', () => {
  const rows = table('| condition, with `a` missing and `b` = 2 | |');

  it.each(
    rows.flatMap(([conditions, end]) => words(conditions).map((condition) => [condition, end] as const)),
  )('%s: %s', (when, end) => {
    expect(['taken', 'not taken']).toContain(end);
    const { problems, document } = readPolicyDocument(
      JSON.stringify({
        ...{ apiVersion: 'millrace/v1', kind: 'RoutingPolicy', name: 'missing', version: 1 },
        signals: { a: 'double', b: 'double' },
        tree: [
          { id: 'taken', when, to: target() },
          { id: 'not-taken', to: target() },
        ],
        tests: [{ signals: { b: 2 }, leaf: end?.replace(' ', '-') }],
      }),
    );
    expect(problems).toEqual([]);
    if (document === undefined) throw new Error('no policy');
    expect(validatePolicy(document).filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});

const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
const policyWith = (fields: Record<string, unknown>) =>
  problemsOfPolicy({ ...whole(), ...fields }).length === 0;
const withFallback = (fallback: string[]) =>
  policyWith({ tuned: {}, expect: {}, tests: [], tree: [{ id: 'one', to: target(), fallback }] });
const withQueries = (queries: unknown[]) => policyWith({ rollout: { guardrails: { queries } } });

describe('limits that the page states', () => {
  it('are those of documents and conditions', () => {
    const grouped = (count: number): string => String(count).replace(/(?<=\d)(?=\d{3}$)/, ' ');
    const { bytes, nodes, depth } = DOCUMENT_LIMITS;
    expect(prose).toContain(`at most ${bytes / 1_024} KB, ${grouped(nodes)} nodes and ${depth} levels`);
    const { characters, listItems, ...tree } = CONDITION_LIMITS;
    expect(prose).toContain(
      `at most ${grouped(characters)} characters, ${tree.nodes} nodes, ${tree.depth} levels, and ${listItems} items in a list`,
    );
  });

  it.each<[said: string, highest: number, takes: (count: number) => boolean]>([
    ['; at most 64; neither', 64, (count) => policyWith({ name: 'n'.repeat(count) })],
    ['0 … 2147483647;', 2_147_483_647, (version) => policyWith({ version })],
    ['up to 8 accelerator classes', 8, (count) => withFallback(times(count, (n) => `class-${n}`))],
    [
      'At most 100 queries',
      100,
      (count) => withQueries(times(count, (n) => ({ name: `q${n}`, query: 'up', max: 1 }))),
    ],
    ['the longest is `30d`', 30, (days) => policyWith({ rollout: { shadow: `${days}d` } })],
    ['at most 2 048 characters', 2_048, (count) => isCondition('a > 1'.padEnd(count))],
    ['and 128 items in a list', 128, (count) => isCondition(`n in [${times(count, (n) => n)}]`)],
    [
      'at most 64 KB',
      65_536,
      (bytes) => {
        const text = JSON.stringify(whole());
        return isRead(text.padEnd(bytes));
      },
    ],
    [
      '4 096 comparisons, items of lists',
      4_096,
      (count) => policyWith({ tree: weighing(count), tests: [], tuned: {}, expect: {} }),
    ],
  ])('%s', (said, highest, takes) => {
    expect(prose).toContain(said);
    expect([takes(highest), takes(highest + 1)]).toEqual([true, false]);
  });
});

function isRead(text: string): boolean {
  try {
    return readPolicyDocument(text).problems.length === 0;
  } catch (error) {
    if (error instanceof DocumentError) return false;
    throw error;
  }
}

/** Branches whose conditions have so many comparisons together. */
function weighing(comparisons: number): object[] {
  const each = 50;
  const many = times(Math.ceil(comparisons / each), (n) => Math.min(each, comparisons - n * each));
  const branches = many.map((count, n) => ({
    id: `b${n}`,
    when: times(count, () => 'a>1').join('||'),
    to: target(),
  }));
  return [...branches, { id: 'rest', to: target() }];
}
