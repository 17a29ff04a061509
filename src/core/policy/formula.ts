import { nextAbove, nextBelow } from './double.ts';
import {
  type CompareOp,
  type Condition,
  calculate,
  compareNumbers,
  type Numeric,
  printNumeric,
} from './expression.ts';

/**
 * A condition as `all` and `any` of range tests `low <= operand <= high`, with no negation left. It is true exactly where the
 * condition is true in three-valued logic: negation is pushed down to the tests (De Morgan), where `not x < 1` becomes
 * `x >= 1`, and a missing operand is NaN, which is in no range. So "unknown counts as false" costs nothing when it runs.
 */
export type Formula = { readonly kind: 'all' | 'any'; readonly of: readonly Formula[] } | RangeTest;

export interface RangeTest {
  readonly kind: 'range';
  readonly operand: Operand;
  readonly low: number;
  readonly high: number;
}

/** What a range test reads; NaN where it is missing. */
export type Operand =
  /** The signal's own value; flags are 1 and 0. */
  | {
      readonly kind: 'signal';
      readonly key: string;
      readonly name: string;
      readonly whole: boolean;
    }
  | { readonly kind: 'arithmetic'; readonly key: string; readonly expression: Numeric }
  /** -1, 0 or 1: left is less than, equal to, greater than right. */
  | { readonly kind: 'order'; readonly key: string; readonly left: Numeric; readonly right: Numeric }
  /** 1 where the text is one of the values, 0 where it is another. */
  | {
      readonly kind: 'text';
      readonly key: string;
      readonly name: string;
      readonly values: ReadonlySet<string>;
    }
  | { readonly kind: 'same-text'; readonly key: string; readonly left: string; readonly right: string };

export const ALWAYS: Formula = { kind: 'all', of: [] };
export const NEVER: Formula = { kind: 'any', of: [] };

const INVERSE: Readonly<Record<CompareOp, CompareOp>> = {
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '==': '!=',
  '!=': '==',
};
const MIRROR: Readonly<Record<CompareOp, CompareOp>> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  '==': '==',
  '!=': '!=',
};

/** The formula that is true where the condition is true (or, with `wanted` false, where it is false). */
export function toFormula(condition: Condition, tuned: ReadonlyMap<string, number>, wanted = true): Formula {
  switch (condition.kind) {
    case 'boolean':
      return condition.value === wanted ? ALWAYS : NEVER;
    case 'flag':
      return flagTest(condition.name, wanted);
    case 'not':
      return toFormula(condition.operand, tuned, !wanted);
    case 'and':
    case 'or': {
      const operands = condition.operands.map((operand) => toFormula(operand, tuned, wanted));
      return (condition.kind === 'and') === wanted ? all(operands) : any(operands);
    }
    case 'compare':
      return compareTest(
        wanted ? condition.op : INVERSE[condition.op],
        condition.left,
        condition.right,
        tuned,
      );
    case 'member':
      return memberTest(condition.operand, condition.values, tuned, wanted);
    case 'text-member':
      return textTest(condition.name, condition.values, wanted);
    case 'same-flag':
      return any(
        [true, false].map((value) =>
          all([flagTest(condition.left, value), flagTest(condition.right, value === wanted)]),
        ),
      );
    case 'same-text': {
      const { left, right } = condition;
      return point({ kind: 'same-text', key: `${left} == ${right}`, left, right }, wanted);
    }
    default:
      return condition satisfies never;
  }
}

/** Every operand must hold; ranges of the same operand become one. */
export function all(operands: readonly Formula[]): Formula {
  const ranges = new Map<string, RangeTest>();
  const rest: Formula[] = [];
  for (const operand of operands.flatMap((each) => (each.kind === 'all' ? each.of : [each]))) {
    if (operand.kind !== 'range') {
      if (operand.of.length === 0) return NEVER;
      rest.push(operand);
      continue;
    }
    const { key } = operand.operand;
    const known = ranges.get(key);
    const low = Math.max(operand.low, known?.low ?? Number.NEGATIVE_INFINITY);
    const high = Math.min(operand.high, known?.high ?? Number.POSITIVE_INFINITY);
    if (low > high) return NEVER;
    ranges.set(key, { kind: 'range', operand: operand.operand, low, high });
  }
  return wrap('all', [...ranges.values(), ...rest]);
}

function any(operands: readonly Formula[]): Formula {
  const flat = operands.flatMap((each) => (each.kind === 'any' ? each.of : [each]));
  return flat.some((each) => each.kind === 'all' && each.of.length === 0) ? ALWAYS : wrap('any', flat);
}

function wrap(kind: 'all' | 'any', of: readonly Formula[]): Formula {
  const [first] = of;
  return of.length === 1 && first !== undefined ? first : { kind, of };
}

function range(operand: Operand, low: number, high: number): Formula {
  return low <= high ? { kind: 'range', operand, low, high } : NEVER;
}

/** 1 or 0: what an operand with two values has to be. */
function point(operand: Operand, wanted: boolean): Formula {
  const value = wanted ? 1 : 0;
  return { kind: 'range', operand, low: value, high: value };
}

function flagTest(name: string, wanted: boolean): Formula {
  return point({ kind: 'signal', key: name, name, whole: true }, wanted);
}

function textTest(name: string, values: readonly string[], wanted: boolean): Formula {
  const set = new Set(values);
  return point(
    { kind: 'text', key: `${name} in ${JSON.stringify([...set].sort())}`, name, values: set },
    wanted,
  );
}

function compareTest(
  op: CompareOp,
  left: Numeric,
  right: Numeric,
  tuned: ReadonlyMap<string, number>,
): Formula {
  const a = fold(left, tuned);
  const b = fold(right, tuned);
  if (a.kind === 'number' && b.kind === 'number') {
    const known = !Number.isNaN(a.value) && !Number.isNaN(b.value);
    return known && compareNumbers(op, a.value, b.value) ? ALWAYS : NEVER;
  }
  if (b.kind === 'number') return rangeFor(op, operandOf(a), b.value);
  if (a.kind === 'number') return rangeFor(MIRROR[op], operandOf(b), a.value);
  return rangeFor(
    op,
    { kind: 'order', key: `${printNumeric(a)} <> ${printNumeric(b)}`, left: a, right: b },
    0,
  );
}

function rangeFor(op: CompareOp, operand: Operand, value: number): Formula {
  const { NEGATIVE_INFINITY: lowest, POSITIVE_INFINITY: highest } = Number;
  switch (op) {
    case '<':
      return range(operand, lowest, nextBelow(value));
    case '<=':
      return range(operand, lowest, value);
    case '>':
      return range(operand, nextAbove(value), highest);
    case '>=':
      return range(operand, value, highest);
    case '==':
      return range(operand, value, value);
    case '!=':
      return any([range(operand, lowest, nextBelow(value)), range(operand, nextAbove(value), highest)]);
    default:
      return op satisfies never;
  }
}

function memberTest(
  operand: Numeric,
  values: readonly number[],
  tuned: ReadonlyMap<string, number>,
  wanted: boolean,
): Formula {
  const folded = fold(operand, tuned);
  if (folded.kind === 'number') {
    return !Number.isNaN(folded.value) && values.includes(folded.value) === wanted ? ALWAYS : NEVER;
  }
  const tests = values.map((value) => rangeFor(wanted ? '==' : '!=', operandOf(folded), value));
  if (wanted) return any(tests);
  // Outside an empty list is everything that is there at all.
  return all([rangeFor('<=', operandOf(folded), Number.POSITIVE_INFINITY), ...tests]);
}

function operandOf(expression: Numeric): Operand {
  const key = printNumeric(expression);
  return expression.kind === 'signal'
    ? { kind: 'signal', key, name: expression.name, whole: expression.integer }
    : { kind: 'arithmetic', key, expression };
}

/** Puts tuned constants in, and computes what reads no signal. */
function fold(expression: Numeric, tuned: ReadonlyMap<string, number>): Numeric {
  switch (expression.kind) {
    case 'number':
    case 'signal':
      return expression;
    case 'tune':
      return { kind: 'number', value: tuned.get(expression.name) ?? Number.NaN };
    case 'negate': {
      const operand = fold(expression.operand, tuned);
      return operand.kind === 'number'
        ? { kind: 'number', value: -operand.value }
        : { kind: 'negate', operand };
    }
    case 'arithmetic': {
      const left = fold(expression.left, tuned);
      const right = fold(expression.right, tuned);
      if (left.kind === 'number' && right.kind === 'number') {
        return { kind: 'number', value: calculate(expression.op, left.value, right.value) };
      }
      return { kind: 'arithmetic', op: expression.op, left, right };
    }
    default:
      return expression satisfies never;
  }
}
