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
  i32Load,
  load,
  loadSplat,
  OP,
  set,
  store,
  tee,
} from '../../core/wasm/instructions.ts';

/** Values of a vector, FP32. */
export const LANES = 4;
const VECTOR_BYTES = 16;
const FLOAT_BYTES = 4;
/** Rows that are computed together: each vector of weights is read once for so many. */
export const ROW_GROUP = 4;

/** One layer, its sizes and the places of its weights written in. */
export interface LayerCode {
  /** K: how many values of an input's row are multiplied. */
  inner: number;
  /** Floats from one input row to the next. */
  inputStride: number;
  /** H, or the next multiple of a vector's values: floats of a row of weights, of a result, and of what is added. */
  paddedColumns: number;
  /** Bytes from the start of memory: FP32 [K, paddedColumns]. */
  weights: number;
  /** FP32 [paddedColumns]. */
  bias: number;
  /** Whether each row gets a row of another value. */
  isAdded: boolean;
  activation: 'none' | 'relu';
}

/**
 * The code of one layer: `run(x, y, rows, added, index)` gives y[row] = activation(b + added[index[row]] + x[row] · W) for so many rows, a multiple
 * of `ROW_GROUP`. The product of a request's own columns is thus made once per request, and gathered where its candidates' sums begin.
 *
 * A tile of four rows and eight columns has its sums in registers while all K values of the rows are gone through: of the fifteen that x64 leaves,
 * eight, and one for each vector of weights and the row's value.
 */
const TILE_VECTORS = 2;
/** Of K at a time, so that the loop itself costs little. */
const UNROLLED = 4;

const [X, Y, ROWS, ADDED, INDEX, FROM, WEIGHTS, END] = [0, 1, 2, 3, 4, 5, 6, 7];
const FIRST_ADDED = 8;
const FIRST_VECTOR = FIRST_ADDED + ROW_GROUP;
const FACTOR = FIRST_VECTOR;
const FIRST_WEIGHT = FACTOR + 1;
const FIRST_SUM = FIRST_WEIGHT + TILE_VECTORS;
const I32_LOCALS = 3 + ROW_GROUP;
const V128_LOCALS = 1 + TILE_VECTORS + ROW_GROUP * TILE_VECTORS;

const ZEROS: readonly number[] = new Array<number>(VECTOR_BYTES).fill(0);
const GROUP: readonly number[] = Array.from({ length: ROW_GROUP }, (_, row) => row);

export function layerModule(layer: LayerCode): Uint8Array<ArrayBuffer> {
  const body = [
    ...[2, I32_LOCALS, VALUE.i32, V128_LOCALS, VALUE.v128],
    ...OP.loop,
    ...(layer.isAdded ? findAdded(layer) : []),
    ...tiles(layer),
    ...advance(X, ROW_GROUP * layer.inputStride * FLOAT_BYTES),
    ...advance(Y, ROW_GROUP * layer.paddedColumns * FLOAT_BYTES),
    ...advance(INDEX, ROW_GROUP * FLOAT_BYTES),
    ...[...get(ROWS), ...i32(ROW_GROUP), ...OP.i32Sub, ...tee(ROWS), ...branchIf(0)],
    ...OP.end,
    ...OP.end,
  ];
  const parameters = new Array<number>(5).fill(VALUE.i32);
  return Uint8Array.from(
    [
      MODULE_HEADER,
      section(SECTION.type, [[0x60, parameters.length, ...parameters, 0]]),
      section(SECTION.import, [[...name('host'), ...name('memory'), KIND.memory, 0, ...unsigned(1)]]),
      section(SECTION.function, [[0]]),
      section(SECTION.export, [[...name('run'), KIND.function, 0]]),
      section(SECTION.code, [sized(body)]),
    ].flat(),
  );
}

/** Where what is added to each row of the group lies. */
function findAdded({ paddedColumns }: LayerCode): Code {
  return GROUP.flatMap((row) => [
    ...[...get(INDEX), ...i32Load(row * FLOAT_BYTES), ...i32(paddedColumns * FLOAT_BYTES), ...OP.i32Mul],
    ...[...get(ADDED), ...OP.i32Add, ...set(FIRST_ADDED + row)],
  ]);
}

function tiles(layer: LayerCode): Code {
  const vectors = layer.paddedColumns / LANES;
  const code: number[] = [];
  for (let first = 0; first < vectors; first += TILE_VECTORS)
    code.push(...tile(layer, first, Math.min(TILE_VECTORS, vectors - first)));
  return code;
}

interface TileSum {
  row: number;
  vector: number;
  local: number;
  /** Of the vector in its row, bytes. */
  offset: number;
}

function tile(layer: LayerCode, first: number, vectors: number): Code {
  const sums = GROUP.flatMap((row) =>
    Array.from({ length: vectors }, (_, vector): TileSum => {
      const local = FIRST_SUM + row * TILE_VECTORS + vector;
      return { row, vector, local, offset: (first + vector) * VECTOR_BYTES };
    }),
  );
  return [
    ...sums.flatMap((sum) => [...startOf(layer, sum), ...set(sum.local)]),
    ...products(layer, sums),
    ...sums.flatMap(({ row, local, offset }) => [
      ...[
        ...get(Y),
        ...get(local),
        ...(layer.activation === 'relu' ? [...bytes(ZEROS), ...OP.f32x4PseudoMax] : []),
      ],
      ...store(row * layer.paddedColumns * FLOAT_BYTES + offset),
    ]),
  ];
}

function startOf({ bias, isAdded }: LayerCode, { row, offset }: TileSum): Code {
  const ofLayer = [...i32(bias + offset), ...load(0)];
  return isAdded ? [...get(FIRST_ADDED + row), ...load(offset), ...ofLayer, ...OP.f32x4Add] : ofLayer;
}

/** Adds all K products to the sums. */
function products(layer: LayerCode, sums: readonly TileSum[]): Code {
  const { inner, weights, paddedColumns } = layer;
  const rest = inner % UNROLLED;
  const whole = inner - rest;
  const rowBytes = paddedColumns * FLOAT_BYTES;
  const steps = (count: number): Code => Array.from({ length: count }, (_, k) => step(layer, sums, k)).flat();
  return [
    ...[...get(X), ...set(FROM), ...i32(weights), ...set(WEIGHTS)],
    ...(whole === 0
      ? []
      : [
          ...[...i32(weights + whole * rowBytes), ...set(END)],
          ...OP.loop,
          ...steps(UNROLLED),
          ...advance(FROM, UNROLLED * FLOAT_BYTES),
          ...[...get(WEIGHTS), ...i32(UNROLLED * rowBytes), ...OP.i32Add, ...tee(WEIGHTS)],
          ...[...get(END), ...OP.i32LtU, ...branchIf(0)],
          ...OP.end,
        ]),
    ...steps(rest),
  ];
}

/** The k-th value after FROM of each row, times its row of weights. */
function step({ inputStride, paddedColumns }: LayerCode, sums: readonly TileSum[], k: number): Code {
  const ofRow = (row: number): readonly TileSum[] => sums.filter((sum) => sum.row === row);
  return [
    ...ofRow(0).flatMap(({ vector, offset }) => [
      ...[...get(WEIGHTS), ...load(k * paddedColumns * FLOAT_BYTES + offset), ...set(FIRST_WEIGHT + vector)],
    ]),
    ...GROUP.flatMap((row) => [
      ...[...get(FROM), ...loadSplat((row * inputStride + k) * FLOAT_BYTES), ...set(FACTOR)],
      ...ofRow(row).flatMap(({ vector, local }) => [
        ...[...get(FACTOR), ...get(FIRST_WEIGHT + vector), ...get(local)],
        ...[...OP.relaxedMultiplyAdd, ...set(local)],
      ]),
    ]),
  ];
}

function advance(local: number, by: number): Code {
  return [...get(local), ...i32(by), ...OP.i32Add, ...set(local)];
}
