/** How a WebAssembly module is written, byte by byte (WebAssembly Core Specification 2.0, section 5), for whoever makes code at run time. */

export const MODULE_HEADER: readonly number[] = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
export const VALUE = { i32: 0x7f, f64: 0x7c, v128: 0x7b } as const;
export const SECTION = { type: 1, import: 2, function: 3, memory: 5, export: 7, code: 10 } as const;
export const KIND = { function: 0, memory: 2 } as const;
/** A block without parameters that leaves no value. */
export const NO_VALUE = 0x40;

export function section(id: number, items: readonly (readonly number[])[]): number[] {
  return [id, ...sized([...unsigned(items.length), ...items.flat()])];
}

export function sized(bytes: readonly number[]): number[] {
  return unsigned(bytes.length).concat(bytes);
}

export function name(text: string): number[] {
  return sized([...new TextEncoder().encode(text)]);
}

/** LEB128. */
export function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}

/** LEB128 of a whole number of 32 bits with its sign, which is the sixth bit of the last byte. */
export function signed(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x3f || rest < -0x40) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  bytes.push(rest & 0x7f);
  return bytes;
}
