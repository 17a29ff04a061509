import * as v from 'valibot';
import { finite, keysOf, mapping, recordOf } from '../../core/json-values.ts';
import type { ShapeRow, TrafficImporter } from './importer.ts';
import type { TraceFile } from './trace-file.ts';

const LINE = v.pipe(
  mapping,
  v.object({ signals: recordOf(v.string(), v.union([finite, v.boolean(), v.string(), v.null()])) }),
);
const ALLOWED = 'one JSON object per line, with "signals", as `millrace capture` writes it';
const CANDIDATES_MAX = 4_096;
const HISTORY_ROWS_MAX = 1_000;

/** `capture-corpus`: what `millrace capture` recorded. Of a request it has signals and no tensors: its size is taken, and no time is known. */
export const captureCorpus: TrafficImporter = {
  format: 'capture-corpus',
  firstLine: '{"signals": …}',
  isFirstLine: (line) => line.startsWith('{') && line.includes('"signals"'),
  *rows(file: TraceFile): Generator<ShapeRow, void, void> {
    for (const { number, text } of file.lines()) {
      const signals = signalsOf(text, number, file);
      const candidates = sizeOf(signals, 'candidateCount', { number, file, least: 1, most: CANDIDATES_MAX });
      const historyRows = sizeOf(signals, 'sequenceLength', {
        number,
        file,
        least: 0,
        most: HISTORY_ROWS_MAX,
      });
      yield { kind: 'shape', shape: { candidates, historyRows } };
    }
  },
};

function signalsOf(text: string, number: number, file: TraceFile): Readonly<Record<string, unknown>> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw file.bad(number, 'the line', text, ALLOWED);
  }
  const parsed = v.safeParse(LINE, content);
  if (parsed.success) return parsed.output.signals;
  throw file.bad(number, keysOf(parsed.issues[0]).join('.') || 'the line', text, ALLOWED);
}

interface SizeOf {
  number: number;
  file: TraceFile;
  least: number;
  most: number;
}

/** A signal that could not be read is null: then the least is taken. */
function sizeOf(
  signals: Readonly<Record<string, unknown>>,
  name: string,
  { number, file, least, most }: SizeOf,
): number {
  const value = Object.hasOwn(signals, name) ? signals[name] : null;
  if (value === null) return least;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw file.bad(number, `signals.${name}`, String(value), `a whole number, ${least} … ${most}, or null`);
}
