import type { RateRow, TrafficImporter } from './importer.ts';
import { parseTimeStamp, TIME_STAMP_ALLOWED } from './time-stamp.ts';
import type { TraceFile } from './trace-file.ts';

const HEADER = 'timestamp,value';
/** More than any installation takes; it also keeps a run from having no end. */
const PER_SECOND_MAX = 10_000_000;

/** `rate-csv`: a time stamp, and how many requests a second came from then on. */
export const rateCsv: TrafficImporter = {
  format: 'rate-csv',
  firstLine: HEADER,
  isFirstLine: (line) => line.toLowerCase() === HEADER,
  *rows(file: TraceFile): Generator<RateRow, void, void> {
    let firstMs: number | undefined;
    let lastMs = Number.NEGATIVE_INFINITY;
    for (const { number, text } of file.lines()) {
      if (firstMs === undefined && this.isFirstLine(text)) continue;
      const cells = text.split(',').map((cell) => cell.trim());
      if (cells.length !== 2) throw file.bad(number, 'columns', String(cells.length), `2: ${HEADER}`);
      const [stamp = '', value = ''] = cells;
      const timeMs = parseTimeStamp(stamp);
      if (Number.isNaN(timeMs)) throw file.bad(number, 'timestamp', stamp, TIME_STAMP_ALLOWED);
      if (timeMs <= lastMs)
        throw file.bad(number, 'timestamp', stamp, 'time stamps that rise from line to line');
      const perSecond = /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? Number(value) : Number.NaN;
      if (!(perSecond <= PER_SECOND_MAX))
        throw file.bad(number, 'value', value, `requests per second, 0 … ${PER_SECOND_MAX}`);
      firstMs ??= timeMs;
      lastMs = timeMs;
      yield { kind: 'rate', atMs: timeMs - firstMs, perSecond };
    }
  },
};
