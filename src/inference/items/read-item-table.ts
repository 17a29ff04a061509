import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { firstNonFinite } from '../../core/request/finite.ts';
import { checkDigest } from '../repository/check-digest.ts';
import { parseAs, readJson } from '../repository/parse-file.ts';
import { openToRead, pathInside, readInside } from '../repository/version-files.ts';
import { checkIndex } from './check-index.ts';
import { ELEMENT_BYTES, layoutOf, type Manifest, manifestSchema, TABLE_LIMITS } from './manifest.ts';
import { ENTRY_BYTES } from './table-code.ts';
import { scratchOf, type TableMemory, tableMemory } from './table-memory.ts';

const CHUNK_BYTES = 1024 * 1024;

/** Where a table lies. */
export interface TablePlace {
  /** Of the model repository, a real path: nothing is read outside of it. */
  root: string;
  /** `<family>/<version>`. */
  folder: string;
  table: string;
}

export interface DescribedTable {
  manifest: Manifest;
  /** `sha256:<hex>` of the description, which holds the digest of the rows: the same digest, the same table. */
  digest: string;
}

export function manifestFile(table: string): string {
  return `items.${table}.json`;
}

export function rowsFile(table: string): string {
  return `items.${table}.bin`;
}

/** @throws MillraceError INVALID_MODEL */
export async function readManifest({ root, folder, table }: TablePlace): Promise<DescribedTable> {
  const label = `${folder}/${manifestFile(table)}`;
  const path = join(root, label);
  const { bytes, digest } = await readInside(root, path, label, TABLE_LIMITS.manifestBytes).catch(notBuilt);
  const manifest = parseAs(label, manifestSchema, readJson(label, Buffer.from(bytes).toString('utf8')));
  if (manifest.name !== table)
    throw new MillraceError('INVALID_MODEL', `${label} is about another table than its name says`, {
      value: manifest.name,
      allowed: table,
    });
  return { manifest, digest };
}

/** A config may name a table before there is one. */
function notBuilt(error: unknown): never {
  const cause = error instanceof MillraceError ? error.cause : undefined;
  if (
    !(error instanceof MillraceError) ||
    !(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')
  )
    throw error;
  throw new MillraceError('INVALID_MODEL', error.message, {
    advice: 'config.yaml names the table; millrace items build makes it.',
    cause,
  });
}

/**
 * Reads items.<table>.bin and holds it against its description: size, digest, finite values, and an index in which each id is found once.
 * @throws MillraceError INVALID_MODEL
 */
export async function readRows(
  { root, folder, table }: TablePlace,
  manifest: Manifest,
  bytesMax: number,
): Promise<TableMemory> {
  const label = `${folder}/${rowsFile(table)}`;
  if (manifest.bytes > bytesMax)
    throw new MillraceError('INVALID_MODEL', `${label} is too large`, {
      value: manifest.bytes,
      allowed: `at most ${bytesMax} bytes`,
    });
  const file = await openToRead(await pathInside(root, join(root, label), label));
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new MillraceError('INVALID_MODEL', `${label} is not a file`);
    if (stat.size !== manifest.bytes) throw wrongSize(label, stat.size, manifest.bytes);
    const rowBytes = manifest.columns.length * ELEMENT_BYTES[manifest.datatype];
    const memory = tableMemory(scratchOf(manifest.bytes, rowBytes).bytes);
    await readChecked(file, label, manifest, new Uint8Array(memory.buffer, 0, manifest.bytes));
    checkIndex(label, manifest, memory.buffer);
    if (manifest.ids === 'INT64') joinEntries(manifest, memory.buffer);
    return memory;
  } finally {
    await file.close();
  }
}

async function readChecked(
  file: FileHandle,
  label: string,
  manifest: Manifest,
  bytes: Uint8Array,
): Promise<void> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, at, Math.min(CHUNK_BYTES, bytes.length - at), at);
    if (bytesRead === 0) throw wrongSize(label, at, manifest.bytes);
    hash.update(bytes.subarray(at, at + bytesRead));
    at += bytesRead;
  }
  const digest = `sha256:${hash.digest('hex')}`;
  checkDigest(label, digest, { digest: manifest.digest, by: 'description' });
  if (manifest.datatype === 'float32') checkFinite(label, manifest, bytes);
}

const ENTRY_WORDS = ENTRY_BYTES / 4;

/**
 * Puts each entry's id and row side by side, where the file has all rows before all ids: a lookup then waits for one place of the two. In place, cycle by
 * cycle of the permutation: a copy of millions of rows would stay with the process.
 */
function joinEntries(manifest: Manifest, buffer: SharedArrayBuffer): void {
  const { rowOf, ids } = layoutOf(manifest);
  const { rows } = manifest;
  const count = ENTRY_WORDS * rows;
  const words = new Uint32Array(buffer, rowOf, Math.max(count, (ids - rowOf) / 4 + 2 * rows));
  words.copyWithin(rows, (ids - rowOf) / 4);
  const moved = new Uint32Array(Math.ceil(count / 32));
  const isMoved = (word: number): boolean => ((moved[word >>> 5] ?? 0) & (1 << (word & 31))) !== 0;
  const sourceOf = (word: number): number => {
    const entry = Math.floor(word / ENTRY_WORDS);
    const part = word - ENTRY_WORDS * entry;
    return part === 2 ? entry : rows + 2 * entry + part;
  };
  for (let start = 0; start < count; start += 1) {
    if (isMoved(start)) continue;
    const first = words[start] ?? 0;
    for (let to = start, from = sourceOf(to); ; to = from, from = sourceOf(to)) {
      moved[to >>> 5] = (moved[to >>> 5] ?? 0) | (1 << (to & 31));
      words[to] = from === start ? first : (words[from] ?? 0);
      if (from === start) break;
    }
  }
}

function checkFinite(label: string, manifest: Manifest, bytes: Uint8Array): void {
  const width = manifest.columns.length;
  const { rows } = layoutOf(manifest);
  const index = firstNonFinite(bytes.subarray(rows, 4 * (manifest.rows + 1) * width), 'FP32');
  if (index < 0) return;
  throw new MillraceError('INVALID_MODEL', `${label} holds NaN or an infinity`, {
    value: `row ${Math.floor(index / width)}, column ${manifest.columns[index % width]}`,
    allowed: 'finite numbers',
  });
}

function wrongSize(label: string, bytes: number, wanted: number): MillraceError {
  const what = bytes < wanted ? 'is cut short' : 'is longer than its description says';
  return new MillraceError('INVALID_MODEL', `${label} ${what}`, {
    value: `${bytes} bytes`,
    allowed: `${wanted} bytes`,
    advice: 'Copy it again, or build it again: millrace items build.',
  });
}
