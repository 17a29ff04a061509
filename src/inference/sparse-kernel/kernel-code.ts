import {
  KIND,
  MODULE_HEADER,
  name,
  SECTION,
  section,
  sized,
  unsigned,
  VALUE,
} from '../../core/wasm/binary.ts';
import {
  branchIf,
  bytes,
  type Code,
  get,
  i32,
  load,
  loadSplat,
  OP,
  set,
  store,
  tee,
} from '../../core/wasm/instructions.ts';
import { GROUP, type KernelLayout, LANES, VECTOR_BYTES } from './kernel-layout.ts';

/**
 * The code of one product, its sizes and places in memory written in: `run(x, y, rows)` gives y[row, :] = bias + Σ x[row, k] · W[k, :] over the k
 * whose x[row, k] is not zero, and returns how many those were.
 *
 * Each row is gone through once for its non-zeros: eight values at a time, without a branch, the places of those that are not zero, which a
 * table has by their bit mask, are appended to a list. Then, for each tile of columns, the list is gone through with the tile's sums in registers.
 *
 * Relaxed SIMD: a product and its sum are rounded once where the CPU can, as ONNX Runtime has it, too.
 */

/** Vectors of sums that stay in registers, of the sixteen that x64 has: the factor, a row's vector and what the compiler keeps for itself need the rest. */
const TILE_VECTORS = 12;

const [X, Y, ROWS, K, PLACE, END, FROM, TOTAL, MASK, FACTOR, INDEX, FIRST_SUM] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
];
const I32_LOCALS = 6;
const V128_LOCALS = 2 + TILE_VECTORS;

const ZEROS: readonly number[] = new Array<number>(VECTOR_BYTES).fill(0);
const GROUP_IN_EACH_LANE: readonly number[] = new Array<number[]>(GROUP).fill([GROUP, 0]).flat();

export function kernelModule(layout: KernelLayout): Uint8Array<ArrayBuffer> {
  const body = [
    ...[2, I32_LOCALS, VALUE.i32, V128_LOCALS, VALUE.v128],
    ...rowLoop(layout),
    ...get(TOTAL),
    ...OP.end,
  ];
  return Uint8Array.from(
    [
      MODULE_HEADER,
      section(SECTION.type, [[0x60, 3, VALUE.i32, VALUE.i32, VALUE.i32, 1, VALUE.i32]]),
      section(SECTION.import, [[...name('host'), ...name('memory'), KIND.memory, 0, ...unsigned(1)]]),
      section(SECTION.function, [[0]]),
      section(SECTION.export, [[...name('run'), KIND.function, 0]]),
      section(SECTION.code, [sized(body)]),
    ].flat(),
  );
}

function rowLoop(layout: KernelLayout): Code {
  const { inner, columns } = layout;
  return [
    ...OP.loop,
    ...listNonZeros(layout),
    ...tiles(layout),
    ...advance(X, inner * 4),
    ...advance(Y, columns * 4),
    ...[...get(ROWS), ...i32(1), ...OP.i32Sub, ...tee(ROWS), ...branchIf(0)],
    ...OP.end,
  ];
}

/** Writes where in the row x is not zero; the list's end is at END. */
function listNonZeros({ inner, list }: KernelLayout): Code {
  const whole = inner - (inner % GROUP);
  const rest = inner % GROUP;
  return [
    ...[...i32(list), ...set(END)],
    ...[...bytes(ZEROS), ...set(INDEX)],
    ...[...get(X), ...set(FROM)],
    ...(whole === 0
      ? []
      : [
          ...[...get(X), ...i32(whole * 4), ...OP.i32Add, ...set(PLACE)],
          ...OP.loop,
          ...maskOfNonZeros(),
          ...appendMasked(),
          ...[...get(FROM), ...i32(GROUP * 4), ...OP.i32Add, ...tee(FROM)],
          ...[...get(PLACE), ...OP.i32LtU, ...branchIf(0)],
          ...OP.end,
        ]),
    // Beyond the row's end lies the next row, or slack.
    ...(rest === 0
      ? []
      : [
          ...[...maskOfNonZeros(), ...get(MASK), ...i32(2 ** rest - 1), ...OP.i32And, ...set(MASK)],
          ...appendMasked(),
        ]),
    ...[...get(TOTAL), ...get(END), ...i32(list), ...OP.i32Sub],
    ...[...i32(1), ...OP.i32ShrU, ...OP.i32Add, ...set(TOTAL)],
  ];
}

/** Of the group at FROM. NaN is not equal to zero, −0 is. */
function maskOfNonZeros(): Code {
  const isNonZero = (offset: number): Code => [...get(FROM), ...load(offset), ...bytes(ZEROS), ...OP.f32x4Ne];
  return [
    ...[...isNonZero(0), ...isNonZero(VECTOR_BYTES)],
    ...[...OP.i16x8Narrow, ...OP.i16x8Bitmask, ...set(MASK)],
  ];
}

/** Whole vectors of places: those behind the ones that count are written over by the next. */
function appendMasked(): Code {
  return [
    ...[...get(END), ...get(MASK), ...i32(4), ...OP.i32Shl, ...load(0)],
    ...[...get(INDEX), ...OP.i16x8Add, ...store(0)],
    ...[...get(END), ...get(MASK), ...OP.i32Popcnt, ...i32(1), ...OP.i32Shl, ...OP.i32Add, ...set(END)],
    ...[...get(INDEX), ...bytes(GROUP_IN_EACH_LANE), ...OP.i16x8Add, ...set(INDEX)],
  ];
}

function tiles(layout: KernelLayout): Code {
  const vectors = layout.paddedColumns / LANES;
  const code: number[] = [];
  for (let first = 0; first < vectors; first += TILE_VECTORS)
    code.push(...tile(layout, first, Math.min(TILE_VECTORS, vectors - first)));
  return code;
}

/** Stores whole vectors: what the last one has beyond the row's end is overwritten by the next row, or lies in slack. */
function tile({ paddedColumns, list, bias, weights }: KernelLayout, first: number, vectors: number): Code {
  const sums = Array.from({ length: vectors }, (_, n) => ({
    local: FIRST_SUM + n,
    offset: (first + n) * VECTOR_BYTES,
  }));
  return [
    ...sums.flatMap(({ local, offset }) => [...i32(bias + offset), ...load(0), ...set(local)]),
    ...OP.block,
    ...[...i32(list), ...tee(FROM), ...get(END), ...OP.i32LtU, ...OP.i32Eqz, ...branchIf(0)],
    ...OP.loop,
    ...[...get(FROM), ...OP.i32Load16, ...tee(K), ...i32(2), ...OP.i32Shl],
    ...[...get(X), ...OP.i32Add, ...loadSplat(), ...set(FACTOR)],
    ...[...get(K), ...i32(paddedColumns * 4), ...OP.i32Mul, ...set(PLACE)],
    ...sums.flatMap(({ local, offset }) => [
      ...[...get(FACTOR), ...get(PLACE), ...load(weights + offset), ...get(local)],
      ...[...OP.relaxedMultiplyAdd, ...set(local)],
    ]),
    ...[...get(FROM), ...i32(2), ...OP.i32Add, ...tee(FROM)],
    ...[...get(END), ...OP.i32LtU, ...branchIf(0)],
    ...OP.end,
    ...OP.end,
    ...sums.flatMap(({ local, offset }) => [...get(Y), ...get(local), ...store(offset)]),
  ];
}

function advance(local: number, bytes: number): Code {
  return [...get(local), ...i32(bytes), ...OP.i32Add, ...set(local)];
}
