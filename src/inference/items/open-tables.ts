import type { ModelVersion } from '../repository/model-version.ts';
import type { ItemTableCache } from './item-table-cache.ts';
import { type TableRenewal, VersionTables } from './version-tables.ts';

/** The tables of a repository's versions, those that were asked for. */
export class OpenTables {
  readonly #root: string;
  readonly #cache: ItemTableCache;
  readonly #open = new Map<ModelVersion, Promise<VersionTables>>();

  constructor(root: string, cache: ItemTableCache) {
    this.#root = root;
    this.#cache = cache;
  }

  async of(version: ModelVersion): Promise<VersionTables> {
    if (version.tables.length === 0) return VersionTables.none;
    const known = this.#open.get(version);
    if (known !== undefined) return known;
    const opening = VersionTables.open(this.#root, version, this.#cache);
    this.#open.set(version, opening);
    // Who asks again tries again.
    opening.catch(() => this.#open.delete(version));
    return opening;
  }

  async renew(): Promise<TableRenewal[]> {
    const renewals: TableRenewal[] = [];
    for (const opening of this.#open.values()) {
      const tables = await opening.catch(() => undefined);
      if (tables !== undefined) renewals.push(...(await tables.renew()));
    }
    return renewals;
  }
}
