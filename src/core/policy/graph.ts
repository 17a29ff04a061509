import type { Formula, RangeTest } from './formula.ts';
import { type ComputedOperand, type Context, compileOperand, type SlotOf } from './operand.ts';

/** A test: two doubles (low, high), then four integers (slot, `no`, `yes`, nothing). Half a cache line, so that each is read once. */
const RECORD_BYTES = 32;

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

  /** `decide(signals, context)` from a place on. */
  freeze(start: number): (signals: Float64Array, context?: Context) => number {
    const records = new ArrayBuffer(this.size * RECORD_BYTES);
    const bounds = new Float64Array(records);
    const places = new Int32Array(records);
    for (let place = 0; place < this.size; place++) {
      bounds.set([this.#lows[place] ?? 0, this.#highs[place] ?? 0], place << 2);
      places.set([this.#slots[place] ?? 0, this.#no[place] ?? 0, this.#yes[place] ?? 0], (place << 3) + 4);
    }
    const computed = [...this.#computed];
    return (signals, context) => {
      let place = start;
      while (place >= 0) {
        const low = place << 2;
        const record = place << 3;
        const slot = places[record + 4] as number;
        const value =
          slot >= 0 ? (signals[slot] as number) : (computed[~slot] as ComputedOperand)(signals, context);
        const passed = value >= (bounds[low] as number) && value <= (bounds[low + 1] as number);
        place = (passed ? places[record + 6] : places[record + 5]) as number;
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
