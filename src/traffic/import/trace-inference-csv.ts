import {
  DEFAULT_TRACE_MAPPING,
  shapeOf,
  TRACE_HEADER,
  type TraceMapping,
  traceRow,
} from '../trace-inference-csv.ts';
import type { RequestRow, TrafficImporter } from './importer.ts';
import type { TraceFile } from './trace-file.ts';

/** `trace-inference-csv`: the form of the Azure LLM inference data set, a request a line. */
export function traceInferenceCsv(mapping: TraceMapping = DEFAULT_TRACE_MAPPING): TrafficImporter {
  return {
    format: 'trace-inference-csv',
    firstLine: TRACE_HEADER,
    isFirstLine: (line) => line === TRACE_HEADER,
    *rows(file: TraceFile): Generator<RequestRow, void, void> {
      let firstMs: number | undefined;
      let lastMs = Number.NEGATIVE_INFINITY;
      for (const { number, text } of file.lines()) {
        if (firstMs === undefined && text === TRACE_HEADER) continue;
        const row = traceRow(text, (column, value, allowed) => file.bad(number, column, value, allowed));
        if (row.atMs < lastMs)
          throw file.bad(number, 'TIMESTAMP', text.split(',')[0] ?? '', 'time stamps that do not go back');
        lastMs = row.atMs;
        firstMs ??= row.atMs;
        yield { kind: 'request', atMs: row.atMs - firstMs, shape: shapeOf(row, mapping) };
      }
    },
  };
}
