import { NO_VALUE, signed, unsigned } from './binary.ts';

/** Instructions of WebAssembly as bytes; vectors are of 128 bits (Core Specification 2.0, section 5.4; relaxed SIMD). */
export type Code = readonly number[];

export const OP = {
  block: [0x02, NO_VALUE],
  loop: [0x03, NO_VALUE],
  end: [0x0b],
  i32Load16: [0x2f, 1, 0],
  i32Eqz: [0x45],
  i64Eq: [0x51],
  i32LtU: [0x49],
  i32Popcnt: [0x69],
  i32Add: [0x6a],
  i32Sub: [0x6b],
  i32Mul: [0x6c],
  i32And: [0x71],
  i32Xor: [0x73],
  i32Shl: [0x74],
  i32ShrU: [0x76],
  /** Of where to, where from, and how many bytes. */
  memoryCopy: [0xfc, 10, 0, 0],
  i32x4GtS: vector(0x3b),
  f32x4Ne: vector(0x42),
  v128And: vector(0x4e),
  v128Or: vector(0x50),
  v128AnyTrue: vector(0x53),
  i16x8Bitmask: vector(0x84),
  i16x8Narrow: vector(0x85),
  i16x8Add: vector(0x8e),
  f32x4Add: vector(0xe4),
  /** Of a pair the second where the first is less, else the first: a NaN there stays. */
  f32x4PseudoMax: vector(0xeb),
  relaxedMultiplyAdd: vector(0x105),
} as const satisfies Readonly<Record<string, Code>>;

export function get(local: number): Code {
  return [0x20, local];
}

export function set(local: number): Code {
  return [0x21, local];
}

export function tee(local: number): Code {
  return [0x22, local];
}

/** Of a whole number of 32 bits, with a sign or without. */
export function i32(value: number): Code {
  return [0x41, ...signed(value | 0)];
}

export function branch(depth: number): Code {
  return [0x0c, depth];
}

/** Branches out of so many blocks and one more, or to the beginning of the loop that is that one. */
export function branchIf(depth: number): Code {
  return [0x0d, depth];
}

/** The vector at the address on the stack and so many bytes. */
export function load(offset: number): Code {
  return [...vector(0x00), 2, ...unsigned(offset)];
}

export function store(offset: number): Code {
  return [...vector(0x0b), 2, ...unsigned(offset)];
}

/** The number of four bytes at the address on the stack and so many bytes, in all four lanes. */
export function loadSplat(offset = 0): Code {
  return [...vector(0x09), 2, ...unsigned(offset)];
}

/** The whole number of four bytes at the address on the stack and so many bytes. */
export function i32Load(offset: number): Code {
  return [0x28, 2, ...unsigned(offset)];
}

export function i32Store(offset: number): Code {
  return [0x36, 2, ...unsigned(offset)];
}

export function i64Load(offset: number): Code {
  return [0x29, 2, ...unsigned(offset)];
}

/** A vector of sixteen given bytes. */
export function bytes(constant: Code): Code {
  return [...vector(0x0c), ...constant];
}

function vector(operation: number): Code {
  return [0xfd, ...unsigned(operation)];
}
