import type { Formula, Operand, RangeTest } from './formula.ts';
import { type ComputedOperand, type Context, compileOperand, type SlotOf } from './operand.ts';
import { WasmCode } from './wasm-code.ts';

/** Branches in their order; the first whose formula holds is taken, and the last one always is. */
export type Program = readonly Step[];

export interface Step {
  readonly when: Formula;
  /** A leaf's index, or the branches below. */
  readonly then: number | Program;
}

export type Decide = (signals: Float64Array, context?: Context) => number;

/** What is used of it here: its full types come only with those of a browser. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (
    module: object,
    imports: { host: { memory: object; ask(place: number): number } },
  ) => { readonly exports: { run(): number } };
};

/**
 * Where the signals lie that a program tests, for as long as it decides: programs never run within each other, so they share one page. A page
 * holds 8 192 signals; a policy has at most 4 096 nodes.
 */
const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
const tested: Float64Array = new Float64Array(memory.buffer);

/**
 * A policy as one function of comparisons, made as a WebAssembly module: no table is read, no step depends on what was read at the one before, and
 * no text is evaluated. A range test on a signal that is missing (NaN, or a slot that the vector lacks) fails.
 */
export function compileProgram(program: Program, slotOf: SlotOf): Decide {
  const compiler = new ProgramCompiler(slotOf);
  const module = new WebAssembly.Module(compiler.compile(program));
  const { slots, computed } = compiler;
  let askedOf = tested;
  let askedWith: Context | undefined;
  const ask = (place: number): number => computed[place]?.(askedOf, askedWith) ?? Number.NaN;
  const { run } = new WebAssembly.Instance(module, { host: { memory, ask } }).exports;
  // Compiled whole now, and not at the first request: a function is made when it is first called.
  tested.fill(Number.NaN);
  run();
  const copy = (signals: Float64Array): void => {
    for (let place = 0; place < slots.length; place += 1)
      tested[place] = signals[slots[place] ?? -1] ?? Number.NaN;
  };
  if (computed.length === 0)
    return (signals) => {
      copy(signals);
      return run();
    };
  return (signals, context) => {
    copy(signals);
    askedOf = signals;
    askedWith = context;
    const leaf = run();
    askedOf = tested;
    askedWith = undefined;
    return leaf;
  };
}

class ProgramCompiler {
  /** The caller's slot of each signal that is tested, by its place in the memory. */
  readonly slots: number[] = [];
  readonly computed: ComputedOperand[] = [];
  readonly #placeBySlot = new Map<number, number>();
  readonly #computedByKey = new Map<string, number>();
  readonly #code = new WasmCode();
  readonly #slotOf: SlotOf;

  constructor(slotOf: SlotOf) {
    this.#slotOf = slotOf;
  }

  compile(program: Program): Uint8Array<ArrayBuffer> {
    this.#program(program);
    this.#code.plain('unreachable');
    return this.#code.module();
  }

  #program(program: Program): void {
    const last = program.length - 1;
    for (const [index, { when, then }] of program.entries()) {
      if (index === last) {
        this.#take(then);
        continue;
      }
      this.#code.block();
      this.#unless(when, 0);
      this.#take(then);
      this.#code.plain('end');
    }
  }

  #take(then: number | Program): void {
    if (typeof then === 'number') {
      this.#code.integer(then);
      this.#code.plain('return');
    } else {
      this.#program(then);
    }
  }

  /** Branches where the formula does not hold. */
  #unless(formula: Formula, depth: number): void {
    switch (formula.kind) {
      case 'range':
        this.#range(formula);
        this.#code.plain('i32Eqz');
        this.#code.branchIf(depth);
        return;
      case 'all':
        for (const term of formula.of) this.#unless(term, depth);
        return;
      case 'any':
        this.#code.block();
        for (const term of formula.of) this.#where(term, 0);
        this.#code.branch(depth + 1);
        this.#code.plain('end');
        return;
      default:
        formula satisfies never;
    }
  }

  /** Branches where the formula holds. */
  #where(formula: Formula, depth: number): void {
    switch (formula.kind) {
      case 'range':
        this.#range(formula);
        this.#code.branchIf(depth);
        return;
      case 'any':
        for (const term of formula.of) this.#where(term, depth);
        return;
      case 'all':
        this.#code.block();
        for (const term of formula.of) this.#unless(term, 0);
        this.#code.branch(depth + 1);
        this.#code.plain('end');
        return;
      default:
        formula satisfies never;
    }
  }

  /** Leaves 1 or 0. The test has to fail for NaN, whatever its bounds. */
  #range({ operand, low, high }: RangeTest): void {
    this.#value(operand);
    if (low === high) {
      this.#compare('f64Eq', low);
    } else if (high === Number.POSITIVE_INFINITY) {
      this.#compare('f64Ge', low);
    } else if (low === Number.NEGATIVE_INFINITY) {
      this.#compare('f64Le', high);
    } else {
      this.#code.keep();
      this.#compare('f64Ge', low);
      this.#code.kept();
      this.#compare('f64Le', high);
      this.#code.plain('i32And');
    }
  }

  #compare(comparison: 'f64Eq' | 'f64Ge' | 'f64Le', bound: number): void {
    this.#code.double(bound);
    this.#code.plain(comparison);
  }

  #value(operand: Operand): void {
    if (operand.kind !== 'signal') {
      this.#code.callImported(this.#computedPlace(operand));
      return;
    }
    const slot = this.#slotOf(operand.name);
    if (slot === undefined) this.#code.double(Number.NaN);
    else this.#code.load(this.#placeOf(slot));
  }

  #placeOf(slot: number): number {
    const known = this.#placeBySlot.get(slot);
    if (known !== undefined) return known;
    const place = this.slots.push(slot) - 1;
    this.#placeBySlot.set(slot, place);
    return place;
  }

  #computedPlace(operand: Exclude<Operand, { kind: 'signal' }>): number {
    const known = this.#computedByKey.get(operand.key);
    if (known !== undefined) return known;
    const place = this.computed.push(compileOperand(operand, this.#slotOf)) - 1;
    this.#computedByKey.set(operand.key, place);
    return place;
  }
}
