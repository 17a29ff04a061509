import fc from 'fast-check';
import type { SignalValue } from '../../../../src/core/policy/document.ts';

/** Signals that generated policies declare. */
export const SIGNALS = {
  a: 'double',
  b: 'double',
  n: 'int',
  m: 'int',
  f: 'bool',
  g: 'bool',
  s: 'string',
  t: 'string',
} as const;
export const TARGET = { accelerator: 'cpu', kernel: 'dense', memory: 'host' };

/** Few enough that values meet the constants of conditions. */
const CONSTANTS = ['0', '1', '2', '0.5', '1.5', '-1', '1e308'];
const WHOLE = ['0', '1', '2', '3', '-1'];
const TEXTS = ['"eu"', '"us"', "'ap'"];

type Expressions = {
  numeric: string;
  whole: string;
  condition: string;
};

/** Conditions of every kind the language has, as text. */
export const conditions: fc.Arbitrary<string> = fc.letrec<Expressions>((tie) => ({
  whole: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('n', 'm', ...WHOLE),
    fc
      .tuple(tie('whole'), fc.constantFrom('+', '-', '*', '%'), tie('whole'))
      .map(([l, op, r]) => `(${l} ${op} ${r})`),
  ),
  numeric: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('a', 'b', 'n', ...CONSTANTS),
    fc.constantFrom(
      'tune("edge", 1, min: 0.5, max: 2, step: 0.5)',
      "tune('floor', 2, min: 1, max: 4, step: 10%)",
    ),
    tie('whole'),
    tie('numeric').map((operand) => `-(${operand})`),
    fc
      .tuple(tie('numeric'), fc.constantFrom('+', '-', '*', '/'), tie('numeric'))
      .map(([l, op, r]) => `(${l} ${op} ${r})`),
  ),
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(tie('numeric'), fc.constantFrom('<', '<=', '>', '>=', '==', '!='), tie('numeric'))
      .map((parts) => parts.join(' ')),
    fc.constantFrom('f', 'g', 'true', 'false', 'f == g', 'f != g', 'f == true', 'false != g'),
    fc.constantFrom('s == "eu"', 's != "us"', 'context.t == "ap"', 's == t', 's != t'),
    fc
      .tuple(fc.constantFrom('s', 't'), fc.array(fc.constantFrom(...TEXTS), { maxLength: 3 }))
      .map(([name, list]) => `${name} in [${list}]`),
    fc
      .tuple(tie('numeric'), fc.array(fc.constantFrom(...CONSTANTS), { maxLength: 3 }))
      .map(([n, list]) => `${n} in [${list}]`),
    tie('condition').map((operand) => `!(${operand})`),
    fc
      .tuple(tie('condition'), fc.constantFrom('&&', '||'), tie('condition'))
      .map(([l, op, r]) => `(${l} ${op} ${r})`),
  ),
})).condition;

export type BranchSource = { id: string; when?: string } & ({ to: typeof TARGET } | { tree: BranchSource[] });

/** Trees of branches whose ids are numbered in the order of the document. */
export function trees(condition: fc.Arbitrary<string> = conditions): fc.Arbitrary<BranchSource[]> {
  type Shape = { when?: string; tree?: Shape[] };
  const { list } = fc.letrec<{ list: Shape[]; branch: Shape }>((tie) => ({
    list: fc
      .tuple(fc.array(fc.tuple(condition, tie('branch')), { maxLength: 4 }), tie('branch'))
      .map(([guarded, last]) => [...guarded.map(([when, branch]) => ({ ...branch, when })), last]),
    branch: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant({}),
      tie('list').map((tree) => ({ tree })),
    ),
  }));
  return list.map((shapes) => {
    let count = 0;
    const number = (shape: Shape): BranchSource => {
      const head = { id: `node-${count++}`, ...(shape.when === undefined ? {} : { when: shape.when }) };
      return shape.tree === undefined ? { ...head, to: TARGET } : { ...head, tree: shape.tree.map(number) };
    };
    return shapes.map(number);
  });
}

export function policySource(
  tree: readonly unknown[],
  extra: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: 'millrace/v1',
    kind: 'RoutingPolicy',
    name: 'generated',
    version: 1,
    signals: SIGNALS,
    ...extra,
    tree,
  };
}

const numbers = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    2,
    0.5,
    1.5,
    -1,
    3,
    1e308,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ),
  fc.double(),
);
const texts = fc.constantFrom('eu', 'us', 'ap', '');

/** Requests as signals by name; what is not named is missing. */
export const requests: fc.Arbitrary<[string, SignalValue][]> = fc
  .record(
    {
      a: numbers,
      b: numbers,
      n: fc.constantFrom(-1, 0, 1, 2, 3, 2.5),
      m: numbers,
      f: fc.boolean(),
      g: fc.boolean(),
      s: texts,
      t: texts,
    },
    { requiredKeys: [] },
  )
  .map((record) => Object.entries(record));
