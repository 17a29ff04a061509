import type { Manifest } from './manifest.ts';
import type { TablePlace } from './read-item-table.ts';

export interface LoadOrder {
  place: TablePlace;
  manifest: Manifest;
  bytesMax: number;
}

export type LoadAnswer =
  | { kind: 'read'; buffer: SharedArrayBuffer }
  | { kind: 'refused'; message: string }
  /** Not the table's fault. */
  | { kind: 'failed'; message: string };
