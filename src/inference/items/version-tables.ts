import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ItemTable } from './item-table.ts';
import type { ItemTableCache } from './item-table-cache.ts';
import { type DescribedTable, readManifest, rowsFile, type TablePlace } from './read-item-table.ts';

/** What a look for another table came to; no entry for one that is the same as before. */
export type TableRenewal = { version: string; table: string } & (
  | { status: 'renewed'; from: string; to: string; rows: number }
  | { status: 'refused'; error: MillraceError }
);

interface Held {
  place: TablePlace;
  width: number;
  table: ItemTable;
  /** Of its description. */
  digest: string;
  /** What was refused last: the same files are not read again. */
  refused?: { files: string; error: MillraceError };
}

/** The item tables of one model version. Each can be replaced while requests are scored: who found rows in one goes on to read that one. */
export class VersionTables {
  static readonly none = new VersionTables('', undefined, new Map());
  readonly #version: string;
  readonly #cache: ItemTableCache | undefined;
  readonly #held: Map<string, Held>;

  private constructor(version: string, cache: ItemTableCache | undefined, held: Map<string, Held>) {
    this.#version = version;
    this.#cache = cache;
    this.#held = held;
  }

  /** @param root of the repository, a real path @throws MillraceError INVALID_MODEL, MODEL_UNAVAILABLE */
  static async open(root: string, version: ModelVersion, cache: ItemTableCache): Promise<VersionTables> {
    const name = `${version.family}@${version.version}`;
    const held = new Map<string, Held>();
    for (const { input, table } of version.tables) {
      const place = { root, folder: `${version.family}/${version.version}`, table };
      const width = widthOf(version, input);
      const described = await readManifest(place);
      checkWidth(described, table, width);
      held.set(table, { place, width, table: await cache.load(place, described), digest: described.digest });
    }
    return new VersionTables(name, cache, held);
  }

  get(name: string): ItemTable {
    const held = this.#held.get(name);
    if (held === undefined) throw new RangeError(`there is no item table ${name}`);
    return held.table;
  }

  /** Looks whether other tables lie in the folder, and takes those that are whole in place of what is held. */
  async renew(): Promise<TableRenewal[]> {
    const renewals: TableRenewal[] = [];
    for (const [name, held] of this.#held) {
      const renewal = await this.#renewOne(name, held);
      if (renewal !== undefined) renewals.push(renewal);
    }
    return renewals;
  }

  async #renewOne(name: string, held: Held): Promise<TableRenewal | undefined> {
    const of = { version: this.#version, table: name };
    let files = '';
    try {
      const described = await readManifest(held.place);
      if (described.digest === held.digest || this.#cache === undefined) return undefined;
      files = `${described.digest} ${await rowsFileState(held.place)}`;
      if (held.refused?.files === files) throw held.refused.error;
      checkWidth(described, name, held.width);
      const table = await this.#cache.load(held.place, described);
      const from = held.table.label;
      this.#held.set(name, { place: held.place, width: held.width, table, digest: described.digest });
      return { ...of, status: 'renewed', from, to: table.label, rows: table.manifest.rows };
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (!error.retryable) held.refused = { files, error };
      return { ...of, status: 'refused', error };
    }
  }
}

/** Changes with every file that is put in its place. */
async function rowsFileState({ root, folder, table }: TablePlace): Promise<string> {
  const state = await stat(join(root, folder, rowsFile(table))).catch(() => undefined);
  return state === undefined ? 'none' : `${state.mtimeMs} ${state.size} ${state.ino}`;
}

/** Values of one row, as the input of the graph has it. */
function widthOf({ inputs }: ModelVersion, name: string): number {
  const shape = inputs.find((input) => input.name === name)?.shape ?? [];
  return shape.slice(1).reduce((product, size) => product * size, 1);
}

function checkWidth({ manifest }: DescribedTable, table: string, width: number): void {
  if (manifest.columns.length === width) return;
  throw new MillraceError('INVALID_MODEL', `the item table ${table} has another width than its input`, {
    value: `${manifest.columns.length} columns`,
    allowed: `${width}`,
  });
}
