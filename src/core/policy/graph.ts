import type { Formula, RangeTest } from './formula.ts';
import { type ComputedOperand, type Context, compileOperand, type SlotOf } from './operand.ts';

/** Slot, `no`, `yes`, and a spare that makes the multiplication a shift. */
const RECORD_LENGTH = 4;

/**
 * A policy as a graph of range tests in flat arrays. Test i reads its operand v and goes on at `yes[i]` if
 * `low[i] <= v <= high[i]`, else (NaN included) at `no[i]`. A place below zero is the end: leaf `~place`.
 */
export class TestGraph {
  readonly #slots: number[] = [];
  readonly #lows: number[] = [];
  readonly #highs: number[] = [];
  readonly #yes: number[] = [];
  readonly #no: number[] = [];
  readonly #computed: ComputedOperand[] = [];
  readonly #computedByKey = new Map<string, number>();
  readonly #slotOf: SlotOf;

  constructor(slotOf: SlotOf) {
    this.#slotOf = slotOf;
  }

  get size(): number {
    return this.#slots.length;
  }

  /** Adds the tests of a formula, last one first; returns the place of its first test. */
  add(formula: Formula, yes: number, no: number): number {
    switch (formula.kind) {
      case 'range':
        return this.#addTest(formula, yes, no);
      case 'all':
        return formula.of.reduceRight((next, operand) => this.add(operand, next, no), yes);
      case 'any':
        return formula.of.reduceRight((next, operand) => this.add(operand, yes, next), no);
      default:
        return formula satisfies never;
    }
  }

  /** `decide(signals, context)` from a place on. One record per test keeps it on one cache line. */
  freeze(start: number): (signals: Float64Array, context?: Context) => number {
    const records = new Int32Array(this.size * RECORD_LENGTH);
    const bounds = new Float64Array(this.size * 2);
    for (let place = 0; place < this.size; place++) {
      records.set(
        [this.#slots[place] ?? 0, this.#no[place] ?? 0, this.#yes[place] ?? 0],
        place * RECORD_LENGTH,
      );
      bounds.set([this.#lows[place] ?? 0, this.#highs[place] ?? 0], place * 2);
    }
    const computed = [...this.#computed];
    return (signals, context) => {
      let place = start;
      while (place >= 0) {
        const record = place << 2;
        const bound = place << 1;
        const slot = records[record] as number;
        const value =
          slot >= 0 ? (signals[slot] as number) : (computed[~slot] as ComputedOperand)(signals, context);
        const passed = value >= (bounds[bound] as number) && value <= (bounds[bound + 1] as number);
        place = (passed ? records[record + 2] : records[record + 1]) as number;
      }
      return ~place;
    };
  }

  #addTest(test: RangeTest, yes: number, no: number): number {
    const slot = this.#slot(test);
    if (slot === undefined) return no;
    this.#slots.push(slot);
    this.#lows.push(test.low);
    this.#highs.push(test.high);
    this.#yes.push(yes);
    this.#no.push(no);
    return this.#slots.length - 1;
  }

  /** Below zero: the complement of an index among the computed operands. Undefined: always missing. */
  #slot({ operand }: RangeTest): number | undefined {
    if (operand.kind === 'signal') return this.#slotOf(operand.name);
    const known = this.#computedByKey.get(operand.key);
    if (known !== undefined) return ~known;
    this.#computed.push(compileOperand(operand, this.#slotOf));
    this.#computedByKey.set(operand.key, this.#computed.length - 1);
    return ~(this.#computed.length - 1);
  }
}
