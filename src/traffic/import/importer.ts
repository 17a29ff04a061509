import type { RequestShape } from '../request-maker.ts';
import type { TraceFile } from './trace-file.ts';

/** One request of a trace: when it came, ms since the first one, and how big it was. */
export interface RequestRow {
  readonly kind: 'request';
  readonly atMs: number;
  readonly shape: RequestShape;
}

/** From this moment on, ms since the first row, requests came at this rate. */
export interface RateRow {
  readonly kind: 'rate';
  readonly atMs: number;
  readonly perSecond: number;
}

/** One request of a recording that says nothing of times. */
export interface ShapeRow {
  readonly kind: 'shape';
  readonly shape: RequestShape;
}

export type TrafficRow = RequestRow | RateRow | ShapeRow;

/**
 * Reads one format of traces of traffic. To have another one read: write its importer, and name it in `importers.ts`; docs/simulate.md shows one.
 * Rows come in the order of their times, from 0 on; all rows of a format are of one kind.
 */
export interface TrafficImporter {
  /** As `--format` names it. */
  readonly format: string;
  /** How the first line of such a file looks, in words: for whoever has a file that is of no format. */
  readonly firstLine: string;
  isFirstLine(line: string): boolean;
  /**
   * Its rows, one after another: a trace may be larger than the memory. It is called once for each pass over the file.
   * @throws MillraceError INVALID_CONFIG, by `file.bad`, with the line, the column and what is allowed
   */
  rows(file: TraceFile): Iterable<TrafficRow>;
}
