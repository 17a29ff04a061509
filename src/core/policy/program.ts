import type { Formula, Operand, RangeTest } from './formula.ts';
import { type ComputedOperand, type Context, compileOperand, type SlotOf } from './operand.ts';

/** Branches in their order; the first whose formula holds is taken, and the last one always is. */
export type Program = readonly Step[];

export interface Step {
  readonly when: Formula;
  /** A leaf's index, or the branches below. */
  readonly then: number | Program;
}

export type Decide = (signals: Float64Array, context?: Context) => number;

/**
 * A policy as one function of comparisons, made as text: no table is read, and no step depends on what was read at the one before. The text holds
 * nothing that anybody wrote: numbers that were read as numbers, places, and operators. A range test on a signal that is missing (NaN, or a slot
 * that the vector lacks) fails. The parentheses around the function have it compiled here and not at the first request.
 */
export function compileProgram(program: Program, slotOf: SlotOf): Decide {
  const text = new ProgramText(slotOf);
  const body = text.program(program);
  const make = new Function('computed', `"use strict"; return ((s, t) => { let v; ${body} });`);
  return make(text.computed) as Decide;
}

class ProgramText {
  readonly computed: ComputedOperand[] = [];
  readonly #computedByKey = new Map<string, number>();
  readonly #slotOf: SlotOf;

  constructor(slotOf: SlotOf) {
    this.#slotOf = slotOf;
  }

  program(program: Program): string {
    const last = program.length - 1;
    return program.map((step, index) => this.#step(step, index === last)).join('\n');
  }

  #step({ when, then }: Step, last: boolean): string {
    const taken = typeof then === 'number' ? `return ${then};` : this.program(then);
    return last ? taken : `if (${this.#formula(when)}) {${taken}}`;
  }

  #formula(formula: Formula): string {
    switch (formula.kind) {
      case 'range':
        return this.#range(formula);
      case 'all':
        return joined(this.#formulas(formula.of), '&&', 'true');
      case 'any':
        return joined(this.#formulas(formula.of), '||', 'false');
      default:
        return formula satisfies never;
    }
  }

  #formulas(formulas: readonly Formula[]): string[] {
    return formulas.map((formula) => this.#formula(formula));
  }

  #range({ operand, low, high }: RangeTest): string {
    if (operand.kind !== 'signal')
      return within(`(v = computed[${this.#place(operand)}](s, t))`, 'v', low, high);
    const slot = this.#slotOf(operand.name);
    return slot === undefined ? 'false' : within(`s[${slot}]`, `s[${slot}]`, low, high);
  }

  #place(operand: Exclude<Operand, { kind: 'signal' }>): number {
    const known = this.#computedByKey.get(operand.key);
    if (known !== undefined) return known;
    const place = this.computed.push(compileOperand(operand, this.#slotOf)) - 1;
    this.#computedByKey.set(operand.key, place);
    return place;
  }
}

/** `first` reads the value, `again` reads it once more. The test has to fail for NaN, whatever its bounds. */
function within(first: string, again: string, low: number, high: number): string {
  if (low === high) return `${first} === ${literal(low)}`;
  if (high === Number.POSITIVE_INFINITY) return `${first} >= ${literal(low)}`;
  if (low === Number.NEGATIVE_INFINITY) return `${first} <= ${literal(high)}`;
  return `(${first} >= ${literal(low)} && ${again} <= ${literal(high)})`;
}

/** The shortest text that is read as this number again; `Infinity` is a name, which a text can't be made to mean anything else. */
function literal(value: number): string {
  return String(value);
}

function joined(texts: readonly string[], operator: '&&' | '||', empty: 'true' | 'false'): string {
  return texts.length === 0 ? empty : `(${texts.join(` ${operator} `)})`;
}
