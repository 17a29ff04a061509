import { calculate, type Numeric } from './expression.ts';
import type { Operand } from './formula.ts';

/** Texts by name, from the request. */
export type Context = Readonly<Record<string, string>>;

/** Reads an operand that is more than one signal; NaN where something is missing. */
export type ComputedOperand = (signals: Float64Array, context: Context | undefined) => number;

/** The slot of a signal in the caller's vector, or undefined for a signal that the caller never has. */
export type SlotOf = (name: string) => number | undefined;

/** The text, or undefined where it is missing; what an object inherits is no text. */
export function readText(context: Context | undefined, name: string): string | undefined {
  const text: unknown = context?.[name];
  return typeof text === 'string' ? text : undefined;
}

export function compileOperand(
  operand: Exclude<Operand, { kind: 'signal' }>,
  slotOf: SlotOf,
): ComputedOperand {
  switch (operand.kind) {
    case 'arithmetic':
      return compileNumeric(operand.expression, slotOf);
    case 'order': {
      const left = compileNumeric(operand.left, slotOf);
      const right = compileNumeric(operand.right, slotOf);
      return (signals, context) => order(left(signals, context), right(signals, context));
    }
    case 'text': {
      const { name, values } = operand;
      return (_signals, context) => {
        const text = readText(context, name);
        return text === undefined ? Number.NaN : Number(values.has(text));
      };
    }
    case 'same-text': {
      const { left, right } = operand;
      return (_signals, context) => {
        const first = readText(context, left);
        const second = readText(context, right);
        return first === undefined || second === undefined ? Number.NaN : Number(first === second);
      };
    }
    default:
      return operand satisfies never;
  }
}

/** -1, 0 or 1; the difference would not do, since infinity equals itself. */
function order(left: number, right: number): number {
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : Number.NaN;
}

/** The expression has been folded: no tunable is left in it. */
function compileNumeric(expression: Numeric, slotOf: SlotOf): ComputedOperand {
  switch (expression.kind) {
    case 'number': {
      const { value } = expression;
      return () => value;
    }
    case 'tune':
      return () => Number.NaN;
    case 'signal': {
      const slot = slotOf(expression.name);
      return slot === undefined ? () => Number.NaN : (signals) => signals[slot] ?? Number.NaN;
    }
    case 'negate': {
      const operand = compileNumeric(expression.operand, slotOf);
      return (signals, context) => -operand(signals, context);
    }
    case 'arithmetic': {
      const { op } = expression;
      const left = compileNumeric(expression.left, slotOf);
      const right = compileNumeric(expression.right, slotOf);
      return (signals, context) => calculate(op, left(signals, context), right(signals, context));
    }
    default:
      return expression satisfies never;
  }
}
