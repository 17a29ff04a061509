import type { Condition, Numeric } from './expression.ts';

/** Most comparisons, items of lists and calculations of all conditions of a policy: what they cost to check, to compile and at worst to decide. */
export const WEIGHT_MAX = 4_096;

/** How many comparisons, items of lists and calculations a condition is made of. */
export function weightOf(condition: Condition): number {
  switch (condition.kind) {
    case 'boolean':
    case 'flag':
    case 'same-flag':
    case 'same-text':
      return 1;
    case 'not':
      return weightOf(condition.operand);
    case 'and':
    case 'or':
      return condition.operands.reduce((sum, operand) => sum + weightOf(operand), 0);
    case 'compare':
      return 1 + calculationsOf(condition.left) + calculationsOf(condition.right);
    case 'member':
      // What is looked for is calculated anew for each of them.
      return condition.values.length * (1 + calculationsOf(condition.operand));
    case 'text-member':
      return condition.values.length;
    default:
      return condition satisfies never;
  }
}

function calculationsOf(expression: Numeric): number {
  switch (expression.kind) {
    case 'number':
    case 'tune':
    case 'signal':
      return 0;
    case 'negate':
      return 1 + calculationsOf(expression.operand);
    case 'arithmetic':
      return 1 + calculationsOf(expression.left) + calculationsOf(expression.right);
    default:
      return expression satisfies never;
  }
}
