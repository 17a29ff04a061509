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
  branch,
  branchIf,
  type Code,
  get,
  i32,
  i32Load,
  i32Store,
  i64Load,
  load,
  OP,
  set,
  store,
  tee,
} from '../../core/wasm/instructions.ts';
import { pagesOf, type TableMemory, type TableScratch } from './table-memory.ts';

/** An entry of the index in memory: INT64 id, UINT32 row. */
export const ENTRY_BYTES = 12;
const ID_BYTES = 8;
const PLACE_BYTES = 4;
const VECTOR_BYTES = 16;
const CACHE_LINE_BYTES = 64;
/** Of a row; of longer ones the processor reads the rest ahead by itself. */
const LINES_AHEAD_MAX = 16;
/** Longer rows are copied by the runtime. */
const UNROLLED_VECTORS_MAX = 64;

/** A table's sizes and places, written into its code. */
export interface TableCode {
  directory: number;
  entries: number;
  /** What a hash is shifted by for its bucket; 32 where there is one. */
  shift: number;
  /** The row of whoever is not found. */
  nowhere: number;
  rowBytes: number;
  scratch: TableScratch;
}

/** Each takes how many there are in the scratch, at least 1. */
export interface TableFunctions {
  /** The rows of INT64 ids. */
  find(count: number): void;
  /** Rows of FP32 one after another. */
  copy(count: number): void;
}

declare const WebAssembly: {
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (
    module: object,
    imports: { host: { memory: TableMemory } },
  ) => { readonly exports: TableFunctions };
};

/**
 * Looking up and copying are waiting for memory. Each goes over all candidates in loops, of which the first only reads what the next will need: reads that
 * do not wait for each other are then under way side by side. There is no instruction in WebAssembly that prefetches.
 */
export function tableFunctions(table: TableCode, memory: TableMemory): TableFunctions {
  const pages = unsigned(pagesOf(memory.buffer.byteLength));
  const imported = [...name('host'), ...name('memory'), KIND.memory, SHARED_WITH_MAXIMUM, ...pages, ...pages];
  const module = [
    MODULE_HEADER,
    section(SECTION.type, [[0x60, 1, VALUE.i32, 0]]),
    section(SECTION.import, [imported]),
    section(SECTION.function, [[0], [0]]),
    section(SECTION.export, [
      [...name('find'), KIND.function, 0],
      [...name('copy'), KIND.function, 1],
    ]),
    section(SECTION.code, [sized(find(table)), sized(copy(table))]),
  ];
  const code = new WebAssembly.Module(Uint8Array.from(module.flat()));
  return new WebAssembly.Instance(code, { host: { memory } }).exports;
}

const SHARED_WITH_MAXIMUM = 3;

const [COUNT, END, AT, AHEAD, HASH, ENTRY, LAST, ROW] = [0, 1, 2, 3, 4, 5, 6, 7];
const I32_LOCALS = 7;

function find(table: TableCode): Code {
  const { scratch } = table;
  return [
    ...[1, I32_LOCALS, VALUE.i32],
    ...overAll([...hashOfId(scratch.ids), ...bucketAt(table), ...keep(scratch.from, HASH)]),
    ...overAll([
      ...[...recall(scratch.from), ...set(HASH), ...entriesOf(table)],
      ...[...keep(scratch.from, ENTRY), ...keep(scratch.until, LAST)],
    ]),
    ...[...i32(scratch.ahead), ...get(AHEAD), ...i32Store(0)],
    ...overAll([
      ...[...recall(scratch.from), ...set(ENTRY), ...recall(scratch.until), ...set(LAST)],
      ...rowAmong(table),
      ...keep(scratch.rows, ROW),
    ]),
    ...OP.end,
  ];
}

/** AT counts bytes of a place for each candidate. */
function overAll(body: Code): Code {
  return [
    ...[...get(COUNT), ...i32(PLACE_BYTES), ...OP.i32Mul, ...set(END), ...i32(0), ...set(AT)],
    ...OP.loop,
    ...body,
    ...[...get(AT), ...i32(PLACE_BYTES), ...OP.i32Add, ...tee(AT), ...get(END), ...OP.i32LtU, ...branchIf(0)],
    ...OP.end,
  ];
}

function keep(places: number, local: number): Code {
  return [...get(AT), ...get(local), ...i32Store(places)];
}

function recall(places: number): Code {
  return [...get(AT), ...i32Load(places)];
}

/** Twice AT: ids have twice as many bytes. */
function idAddress(): Code {
  return [...get(AT), ...i32(1), ...OP.i32Shl];
}

/** Where in the directory a hash's bucket is; that is read. */
function bucketAt({ directory, shift }: TableCode): Code {
  const bucket = shift === 32 ? i32(0) : [...get(HASH), ...i32(shift), ...OP.i32ShrU];
  return [
    ...[...bucket, ...i32(2), ...OP.i32Shl, ...set(HASH)],
    ...[...get(AHEAD), ...get(HASH), ...i32Load(directory), ...OP.i32Xor, ...set(AHEAD)],
  ];
}

/** The addresses of a bucket's first entry, which is read, and of the one behind its last. */
function entriesOf({ directory, entries }: TableCode): Code {
  const address = (offset: number): Code => [
    ...[...get(HASH), ...i32Load(directory + offset), ...i32(ENTRY_BYTES), ...OP.i32Mul],
    ...[...i32(entries), ...OP.i32Add],
  ];
  return [
    ...[...address(0), ...set(ENTRY), ...address(4), ...set(LAST)],
    ...[...get(AHEAD), ...get(ENTRY), ...i32Load(0), ...OP.i32Xor, ...set(AHEAD)],
  ];
}

/** As `hashInt64`. */
function hashOfId(ids: number): Code {
  const mixed = (by: number): Code => [
    ...[...get(HASH), ...get(HASH), ...i32(by), ...OP.i32ShrU, ...OP.i32Xor],
  ];
  return [
    ...[...idAddress(), ...i32Load(ids), ...set(HASH)],
    ...[...mixed(15), ...i32(0x85ebca6b), ...OP.i32Mul, ...set(HASH)],
    ...[...mixed(13), ...idAddress(), ...i32Load(ids + ID_BYTES / 2), ...OP.i32Xor],
    ...[...i32(0xc2b2ae35), ...OP.i32Mul, ...set(HASH)],
    ...[...mixed(16), ...i32(0x27d4eb2f), ...OP.i32Mul, ...set(HASH)],
    ...[...mixed(15), ...set(HASH)],
  ];
}

function rowAmong({ nowhere, scratch }: TableCode): Code {
  return [
    ...[...i32(nowhere), ...set(ROW)],
    ...OP.block,
    ...OP.loop,
    ...[...get(ENTRY), ...get(LAST), ...OP.i32LtU, ...OP.i32Eqz, ...branchIf(1)],
    ...OP.block,
    ...[...get(ENTRY), ...i64Load(0), ...idAddress(), ...i64Load(scratch.ids), ...OP.i64Eq, ...OP.i32Eqz],
    ...branchIf(0),
    ...[...get(ENTRY), ...i32Load(ID_BYTES), ...set(ROW), ...branch(2)],
    ...OP.end,
    ...[...get(ENTRY), ...i32(ENTRY_BYTES), ...OP.i32Add, ...set(ENTRY), ...branch(0)],
    ...OP.end,
    ...OP.end,
  ];
}

function copy(table: TableCode): Code {
  const { rowBytes, scratch } = table;
  const lines = Math.min(LINES_AHEAD_MAX, Math.ceil(rowBytes / CACHE_LINE_BYTES));
  const ahead = Array.from(
    { length: lines },
    (_, line): Code => [
      ...[...get(AHEAD), ...get(ROW), ...i32Load(line * CACHE_LINE_BYTES), ...OP.i32Xor, ...set(AHEAD)],
    ],
  );
  const row: Code = [...recall(scratch.rows), ...i32(rowBytes), ...OP.i32Mul, ...set(ROW)];
  return [
    ...[1, I32_LOCALS, VALUE.i32],
    ...overAll([...row, ...ahead.flat()]),
    ...[...i32(scratch.ahead), ...get(AHEAD), ...i32Store(0), ...i32(scratch.out), ...set(ENTRY)],
    ...overAll([...row, ...copyRow(rowBytes), ...get(ENTRY), ...i32(rowBytes), ...OP.i32Add, ...set(ENTRY)]),
    ...OP.end,
  ];
}

/** Whole vectors: what the last one has beyond the row's end is overwritten by the next row, or lies in slack. */
function copyRow(rowBytes: number): Code {
  const vectors = Math.ceil(rowBytes / VECTOR_BYTES);
  if (vectors > UNROLLED_VECTORS_MAX) return [...get(ENTRY), ...get(ROW), ...i32(rowBytes), ...OP.memoryCopy];
  return Array.from(
    { length: vectors },
    (_, n): Code => [...[...get(ENTRY), ...get(ROW), ...load(n * VECTOR_BYTES), ...store(n * VECTOR_BYTES)]],
  ).flat();
}
