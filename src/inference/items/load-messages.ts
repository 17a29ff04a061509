import type { Manifest } from './manifest.ts';
import type { TablePlace } from './read-item-table.ts';
import type { TableMemory } from './table-memory.ts';

export interface LoadOrder {
  place: TablePlace;
  manifest: Manifest;
  bytesMax: number;
}

export type LoadAnswer =
  | { kind: 'read'; memory: TableMemory }
  | { kind: 'refused'; message: string }
  /** Not the table's fault. */
  | { kind: 'failed'; message: string };
