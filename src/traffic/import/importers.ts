import { MillraceError } from '../../core/errors.ts';
import { DEFAULT_TRACE_MAPPING, type TraceMapping } from '../trace-inference-csv.ts';
import { captureCorpus } from './capture-corpus.ts';
import type { TrafficImporter, TrafficRow } from './importer.ts';
import { rateCsv } from './rate-csv.ts';
import type { TraceFile } from './trace-file.ts';
import { traceInferenceCsv } from './trace-inference-csv.ts';

/** Every format that is read. */
export function trafficImporters(mapping: TraceMapping = DEFAULT_TRACE_MAPPING): readonly TrafficImporter[] {
  return [traceInferenceCsv(mapping), rateCsv, captureCorpus];
}

/** What a trace holds as a whole: read once before a run, so that a bad line never ends one that has begun. */
export interface TraceSummary {
  readonly kind: TrafficRow['kind'];
  readonly rows: number;
  /** Time of the last row; 0 for rows without a time. */
  readonly spanMs: number;
  /** Mean of the rates, each for as long as it held; 0 for rows of another kind. */
  readonly meanPerSecond: number;
}

/** @throws MillraceError INVALID_CONFIG where the file is of no format that is known */
export function importerOf(file: TraceFile, importers: readonly TrafficImporter[]): TrafficImporter {
  const [first] = file.lines();
  const found = importers.find((importer) => first !== undefined && importer.isFirstLine(first.text));
  if (found !== undefined) return found;
  throw new MillraceError('INVALID_CONFIG', `${file.path} is of no format that is known, by its first line`, {
    value: first?.text ?? 'an empty file',
    allowed: importers.map(({ format, firstLine }) => `${firstLine} (${format})`).join('; '),
  });
}

/** Reads all of it. @throws MillraceError INVALID_CONFIG with line, column and what is allowed; also where it has no row */
export function checkTrace(file: TraceFile, importer: TrafficImporter): TraceSummary {
  let rows = 0;
  let last: TrafficRow | undefined;
  let requests = 0;
  for (const row of importer.rows(file)) {
    if (last?.kind === 'rate' && row.kind === 'rate')
      requests += (last.perSecond * (row.atMs - last.atMs)) / 1_000;
    rows += 1;
    last = row;
  }
  if (last === undefined)
    throw new MillraceError('INVALID_CONFIG', `${file.path} holds no row`, {
      allowed: `at least one row of ${importer.format}`,
    });
  const spanMs = last.kind === 'shape' ? 0 : last.atMs;
  return { kind: last.kind, rows, spanMs, meanPerSecond: spanMs === 0 ? 0 : (requests / spanMs) * 1_000 };
}
