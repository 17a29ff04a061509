import type { Branch, LeafBranch, PolicyDocument } from './document.ts';
import { type Condition, calculate, compareNumbers, type Numeric } from './expression.ts';

/** Where a condition gets its values: NaN or undefined for what is missing. */
export interface SignalReader {
  number(name: string): number;
  text(name: string): string | undefined;
}

/**
 * What a condition says, in three-valued logic (Kleene's, as in SQL's WHERE): undefined where it turns on a signal that is
 * missing or NaN. `false && unknown` is false, `true || unknown` is true, whatever their order.
 */
export type Truth = boolean | undefined;

/** Walks the tree as it was written: slow, and plain enough to be checked by eye. `compilePolicy` must agree with it. */
export function evaluateCondition(
  condition: Condition,
  reader: SignalReader,
  tuned: ReadonlyMap<string, number>,
): Truth {
  const evaluate = (operand: Condition): Truth => evaluateCondition(operand, reader, tuned);
  switch (condition.kind) {
    case 'boolean':
      return condition.value;
    case 'flag':
      return flag(reader, condition.name);
    case 'not':
      return not(evaluate(condition.operand));
    case 'and':
      return conjunction(condition.operands.map(evaluate));
    case 'or':
      return not(conjunction(condition.operands.map((operand) => not(evaluate(operand)))));
    case 'compare': {
      const left = evaluateNumeric(condition.left, reader, tuned);
      const right = evaluateNumeric(condition.right, reader, tuned);
      return Number.isNaN(left) || Number.isNaN(right)
        ? undefined
        : compareNumbers(condition.op, left, right);
    }
    case 'member': {
      const value = evaluateNumeric(condition.operand, reader, tuned);
      return Number.isNaN(value) ? undefined : condition.values.some((item) => item === value);
    }
    case 'text-member': {
      const text = reader.text(condition.name);
      return text === undefined ? undefined : condition.values.includes(text);
    }
    case 'same-flag':
      return same(flag(reader, condition.left), flag(reader, condition.right));
    case 'same-text':
      return same(reader.text(condition.left), reader.text(condition.right));
    default:
      return condition satisfies never;
  }
}

export interface Decision {
  readonly leaf: LeafBranch;
  /** Every branch that was looked at, in order; the last one is the leaf. */
  readonly steps: readonly { readonly branch: Branch; readonly truth: Truth }[];
}

/** Decides as `compilePolicy` does, and tells each step. */
export function decideStepwise(
  document: PolicyDocument,
  reader: SignalReader,
  tuned: ReadonlyMap<string, number>,
): Decision {
  const steps: { branch: Branch; truth: Truth }[] = [];
  let list: readonly Branch[] = document.tree;
  for (;;) {
    const taken = list.find((branch) => {
      const truth =
        branch.when === undefined ? true : evaluateCondition(branch.when.condition, reader, tuned);
      steps.push({ branch, truth });
      return truth === true;
    });
    if (taken === undefined)
      throw new Error('a list of branches is not total: parsePolicy lets none through');
    if (taken.kind === 'leaf') return { leaf: taken, steps };
    list = taken.tree;
  }
}

function evaluateNumeric(
  expression: Numeric,
  reader: SignalReader,
  tuned: ReadonlyMap<string, number>,
): number {
  switch (expression.kind) {
    case 'number':
      return expression.value;
    case 'tune':
      return tuned.get(expression.name) ?? Number.NaN;
    case 'signal':
      return reader.number(expression.name);
    case 'negate':
      return -evaluateNumeric(expression.operand, reader, tuned);
    case 'arithmetic': {
      const left = evaluateNumeric(expression.left, reader, tuned);
      return calculate(expression.op, left, evaluateNumeric(expression.right, reader, tuned));
    }
    default:
      return expression satisfies never;
  }
}

/** A flag is 1 or 0; anything else is no flag at all. */
function flag(reader: SignalReader, name: string): Truth {
  const value = reader.number(name);
  return value === 1 ? true : value === 0 ? false : undefined;
}

function not(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function conjunction(truths: readonly Truth[]): Truth {
  if (truths.includes(false)) return false;
  return truths.includes(undefined) ? undefined : true;
}

function same<T>(left: T | undefined, right: T | undefined): Truth {
  return left === undefined || right === undefined ? undefined : left === right;
}
