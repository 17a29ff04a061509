/** Conditions after parsing and type checking: a tree in which no operator has an operand of the wrong type. */
export type Condition =
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'flag'; readonly name: string }
  | { readonly kind: 'not'; readonly operand: Condition }
  | { readonly kind: 'and' | 'or'; readonly operands: readonly Condition[] }
  | { readonly kind: 'compare'; readonly op: CompareOp; readonly left: Numeric; readonly right: Numeric }
  | { readonly kind: 'member'; readonly operand: Numeric; readonly values: readonly number[] }
  | { readonly kind: 'text-member'; readonly name: string; readonly values: readonly string[] }
  | { readonly kind: 'same-flag'; readonly left: string; readonly right: string }
  | { readonly kind: 'same-text'; readonly left: string; readonly right: string };

export type CompareOp = '<' | '<=' | '>' | '>=' | '==' | '!=';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%';

/** A number, always computed in double precision. */
export type Numeric =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'tune'; readonly name: string }
  | { readonly kind: 'signal'; readonly name: string; readonly integer: boolean }
  | { readonly kind: 'negate'; readonly operand: Numeric }
  | {
      readonly kind: 'arithmetic';
      readonly op: ArithmeticOp;
      readonly left: Numeric;
      readonly right: Numeric;
    };

export function compareNumbers(op: CompareOp, left: number, right: number): boolean {
  switch (op) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    case '==':
      return left === right;
    case '!=':
      return left !== right;
    default:
      return op satisfies never;
  }
}

export function calculate(op: ArithmeticOp, left: number, right: number): number {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    case '%':
      return left % right;
    default:
      return op satisfies never;
  }
}

/** One spelling per meaning, so that two conditions that read the same number are seen to do so. */
export function printNumeric(expression: Numeric): string {
  switch (expression.kind) {
    case 'number':
      // A divisor of -0 is another one than 0.
      return Object.is(expression.value, -0) ? '-0' : String(expression.value);
    case 'tune':
      return `tune(${expression.name})`;
    case 'signal':
      return expression.name;
    case 'negate':
      return `-(${printNumeric(expression.operand)})`;
    case 'arithmetic':
      return `(${printNumeric(expression.left)} ${expression.op} ${printNumeric(expression.right)})`;
    default:
      return expression satisfies never;
  }
}
