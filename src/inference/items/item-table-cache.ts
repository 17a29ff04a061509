import { Worker } from 'node:worker_threads';
import { MillraceError } from '../../core/errors.ts';
import { ItemTable } from './item-table.ts';
import type { LoadAnswer, LoadOrder } from './load-messages.ts';
import { type DescribedTable, readManifest, type TablePlace } from './read-item-table.ts';
import type { TableMemory } from './table-memory.ts';

const YOUNG_GENERATION_MB = 2;
/** What 32 bits address, but for what calls need beside the table. */
export const TABLE_BYTES_MAX = 4 * 1024 ** 3 - 16 * 1024 ** 2;

/** The item tables of a process: whoever asks for the same one gets the same memory. A table that nobody holds any more is let go. */
export class ItemTableCache {
  readonly #bytesMax: number;
  readonly #held = new Map<string, WeakRef<ItemTable>>();
  readonly #loading = new Map<string, Promise<ItemTable>>();

  constructor(bytesMax = TABLE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** @throws MillraceError INVALID_MODEL with the reason of a table that is refused, MODEL_UNAVAILABLE where it could not be read */
  async load(place: TablePlace, described?: DescribedTable): Promise<ItemTable> {
    const { manifest, digest } = described ?? (await readManifest(place));
    const held = this.#held.get(digest)?.deref() ?? this.#loading.get(digest);
    if (held !== undefined) return held;
    const loading = readAside({ place, manifest, bytesMax: this.#bytesMax })
      .then((memory) => {
        const table = new ItemTable(manifest, memory);
        this.#held.set(digest, new WeakRef(table));
        return table;
      })
      .finally(() => this.#loading.delete(digest));
    this.#loading.set(digest, loading);
    this.#forget();
    return loading;
  }

  #forget(): void {
    for (const [digest, table] of this.#held) if (table.deref() === undefined) this.#held.delete(digest);
  }
}

function readAside(order: LoadOrder): Promise<TableMemory> {
  const host = import.meta.url.endsWith('.ts') ? './load-host.ts' : './load-host.js';
  const worker = new Worker(new URL(host, import.meta.url), {
    workerData: order,
    // It makes hardly any objects: a heap that grows for them would stay with the process.
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  return new Promise((resolve, reject) => {
    worker.once('message', (answer: LoadAnswer) => {
      if (answer.kind === 'read') resolve(answer.memory);
      else
        reject(
          new MillraceError(
            answer.kind === 'refused' ? 'INVALID_MODEL' : 'MODEL_UNAVAILABLE',
            answer.message,
          ),
        );
    });
    const died = (reason: string): void =>
      reject(
        new MillraceError('MODEL_UNAVAILABLE', `the item table ${order.place.table} was not read: ${reason}`),
      );
    worker.once('error', (error) => died(String(error)));
    worker.once('exit', (code) => died(`its thread ended with ${code}`));
  });
}
