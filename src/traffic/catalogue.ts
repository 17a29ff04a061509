import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { MillraceError } from '../core/errors.ts';
import { checked, finite, whole } from '../core/json-values.ts';

/** Floats per row of the items' features, and per user; models/README.md says what each holds. */
export const ITEM_FEATURES = 32;
export const USER_FEATURES = 64;
const SIGN_SLOT = 31;

export interface CatalogueUser {
  id: number;
  name: string;
  /** FP32 [64]; slots 16–19 are the request's context. */
  features: Float32Array;
  /** FP32 [T, 32], oldest first: rows of items with the sign in slot 31. */
  history: Float32Array;
}

/** The synthetic catalogue that requests are made from. Nothing in it is about a real product or person. */
export interface Catalogue {
  itemIds: readonly number[];
  titles: readonly string[];
  /** FP32 [items, 32], row-major. */
  itemFeatures: Float32Array;
  /** Sums to 1. */
  popularity: readonly number[];
  users: readonly CatalogueUser[];
}

const itemsSchema = v.looseObject({
  format: v.literal(1),
  ids: v.array(whole),
  titles: v.array(v.string()),
  popularity: v.array(finite),
});
const usersSchema = v.looseObject({
  format: v.literal(1),
  ids: v.array(whole),
  names: v.array(v.string()),
  historyOffsets: v.array(whole),
});

/** Reads `catalogue/` as models/README.md describes it. @throws MillraceError INVALID_CONFIG where a file is missing or not of that format. */
export function readCatalogue(folder: string): Catalogue {
  try {
    const items = checked('items.json', itemsSchema, readJson(folder, 'items.json'));
    const users = checked('users.json', usersSchema, readJson(folder, 'users.json'));
    const itemFeatures = readFloats(folder, 'items.features.f32', items.ids.length * ITEM_FEATURES);
    const userFeatures = readFloats(folder, 'users.features.f32', users.ids.length * USER_FEATURES);
    const history = readShorts(folder, 'users.history.i16');
    return {
      itemIds: items.ids,
      titles: items.titles,
      itemFeatures,
      popularity: items.popularity,
      users: users.ids.map((id, index) => ({
        id,
        name: users.names[index] ?? `user ${id}`,
        features: userFeatures.slice(index * USER_FEATURES, (index + 1) * USER_FEATURES),
        history: historyOf(
          history,
          users.historyOffsets[index] ?? 0,
          users.historyOffsets[index + 1] ?? 0,
          itemFeatures,
        ),
      })),
    };
  } catch (error) {
    throw new MillraceError(
      'INVALID_CONFIG',
      `the catalogue cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { value: folder, cause: error },
    );
  }
}

function readJson(folder: string, file: string): unknown {
  return JSON.parse(readFileSync(join(folder, file), 'utf8'));
}

function readFloats(folder: string, file: string, length: number): Float32Array {
  const bytes = readFileSync(join(folder, file));
  if (bytes.byteLength !== length * 4)
    throw new Error(`${file} has ${bytes.byteLength} bytes instead of ${length * 4}`);
  return new Float32Array(Uint8Array.prototype.slice.call(bytes).buffer);
}

function readShorts(folder: string, file: string): Int16Array {
  return new Int16Array(Uint8Array.prototype.slice.call(readFileSync(join(folder, file))).buffer);
}

/** The tensor of a user's history: each entry's item row, with its sign in slot 31. */
function historyOf(history: Int16Array, from: number, to: number, itemFeatures: Float32Array): Float32Array {
  const rows = new Float32Array((to - from) * ITEM_FEATURES);
  for (let entry = from; entry < to; entry += 1) {
    const item = history[entry * 2] ?? 0;
    const row = (entry - from) * ITEM_FEATURES;
    rows.set(itemFeatures.subarray(item * ITEM_FEATURES, (item + 1) * ITEM_FEATURES), row);
    rows[row + SIGN_SLOT] = history[entry * 2 + 1] ?? 0;
  }
  return rows;
}
