import {
  KIND,
  MODULE_HEADER,
  NO_VALUE,
  name,
  SECTION,
  section,
  signed,
  unsigned,
  VALUE,
} from '../wasm/binary.ts';

/** Code of a WebAssembly function, byte by byte, and the module around it. */

const OPCODE = {
  unreachable: 0x00,
  block: 0x02,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  return: 0x0f,
  call: 0x10,
  localGet: 0x20,
  localTee: 0x22,
  f64Load: 0x2b,
  i32Const: 0x41,
  f64Const: 0x44,
  i32Eqz: 0x45,
  f64Eq: 0x61,
  f64Le: 0x65,
  f64Ge: 0x66,
  i32And: 0x71,
} as const;
const FIRST_BYTES = 1_024;
const DOUBLE_BYTES = 8;
/** Alignment of a double, as a power of two. */
const DOUBLE_ALIGNMENT = 3;

export type Plain = 'unreachable' | 'end' | 'return' | 'i32Eqz' | 'f64Eq' | 'f64Le' | 'f64Ge' | 'i32And';

/** The body of a function of no parameters, with one local double. */
export class WasmCode {
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;

  plain(...names: readonly Plain[]): void {
    for (const name of names) this.#push(OPCODE[name]);
  }

  /** A block that leaves no value; a branch to it goes to its end. */
  block(): void {
    this.#push(OPCODE.block, NO_VALUE);
  }

  /** Branches out of so many blocks and one more. */
  branch(depth: number): void {
    this.#push(OPCODE.br, ...unsigned(depth));
  }

  branchIf(depth: number): void {
    this.#push(OPCODE.brIf, ...unsigned(depth));
  }

  integer(value: number): void {
    this.#push(OPCODE.i32Const, ...signed(value));
  }

  double(value: number): void {
    this.#push(OPCODE.f64Const);
    this.#reserve(DOUBLE_BYTES);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, true);
    this.#length += DOUBLE_BYTES;
  }

  /** The double at this place of the memory, counted in doubles. */
  load(place: number): void {
    this.integer(0);
    this.#push(OPCODE.f64Load, DOUBLE_ALIGNMENT, ...unsigned(place * DOUBLE_BYTES));
  }

  /** Asks the imported function, an integer to a double. */
  callImported(argument: number): void {
    this.integer(argument);
    this.#push(OPCODE.call, ...unsigned(0));
  }

  keep(): void {
    this.#push(OPCODE.localTee, ...unsigned(0));
  }

  kept(): void {
    this.#push(OPCODE.localGet, ...unsigned(0));
  }

  /** The module: imports `host.memory` and `host.ask` (i32 → f64), exports `run` (→ i32). */
  module(): Uint8Array<ArrayBuffer> {
    const oneDouble = [1, 1, VALUE.f64];
    const bodyBytes = oneDouble.length + this.#length + 1;
    const bodySize = unsigned(bodyBytes);
    const head = [
      MODULE_HEADER,
      section(SECTION.type, [
        [0x60, 0, 1, VALUE.i32],
        [0x60, 1, VALUE.i32, 1, VALUE.f64],
      ]),
      section(SECTION.import, [
        [...name('host'), ...name('memory'), KIND.memory, 0, ...unsigned(1)],
        [...name('host'), ...name('ask'), KIND.function, 1],
      ]),
      section(SECTION.function, [[0]]),
      section(SECTION.export, [[...name('run'), KIND.function, 1]]),
      [SECTION.code, ...unsigned(1 + bodySize.length + bodyBytes), 1, ...bodySize, ...oneDouble],
    ].flat();
    const module = new Uint8Array(head.length + this.#length + 1);
    module.set(head);
    module.set(this.#bytes.subarray(0, this.#length), head.length);
    module[module.length - 1] = OPCODE.end;
    return module;
  }

  #push(...bytes: readonly number[]): void {
    this.#reserve(bytes.length);
    for (const byte of bytes) {
      this.#bytes[this.#length] = byte;
      this.#length += 1;
    }
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = new Uint8Array(2 * (this.#length + more));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}
