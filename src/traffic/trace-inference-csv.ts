import { MillraceError } from '../core/errors.ts';
import type { Arrival } from './arrivals.ts';

/** One line of a trace of inference requests. */
export interface TraceRow {
  /** Since the first row. */
  atMs: number;
  contextTokens: number;
  generatedTokens: number;
}

export const TRACE_HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const LINE_LENGTH_MAX = 1_000;

/**
 * Reads a trace of the form of the Azure LLM inference data set: a header, then time stamp, context tokens, generated tokens.
 * @throws MillraceError INVALID_CONFIG with line, column and what is allowed.
 */
export function parseTraceInferenceCsv(text: string): TraceRow[] {
  const lines = text.split('\n');
  if (lines[0]?.trim() !== TRACE_HEADER) throw bad(1, 'header', lines[0] ?? '', TRACE_HEADER);
  const rows: TraceRow[] = [];
  let firstMs: number | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  lines.forEach((line, index) => {
    if (index === 0 || line.trim() === '') return;
    if (line.length > LINE_LENGTH_MAX)
      throw bad(index + 1, 'line', `${line.length} characters`, `at most ${LINE_LENGTH_MAX} characters`);
    const row = traceRow(line.trim(), (column, value, allowed) => bad(index + 1, column, value, allowed));
    if (row.atMs < lastMs)
      throw bad(index + 1, 'TIMESTAMP', line.split(',')[0] ?? '', 'time stamps that do not go back');
    lastMs = row.atMs;
    firstMs ??= row.atMs;
    rows.push({ ...row, atMs: row.atMs - firstMs });
  });
  if (rows.length === 0) throw bad(2, 'rows', 'none', 'at least one row');
  return rows;
}

type Refusal = (column: string, value: string, allowed: string) => MillraceError;

/**
 * One line, with the time as it stands there: ms since the epoch.
 * @param refusal what is thrown for a line that is not of that form
 */
export function traceRow(line: string, refusal: Refusal): TraceRow {
  const [stamp = '', context, generated, ...more] = line.split(',');
  if (more.length > 0) throw refusal('columns', String(3 + more.length), TRACE_HEADER);
  return {
    atMs: parseStamp(stamp, refusal),
    contextTokens: parseCount(context, 'ContextTokens', refusal),
    generatedTokens: parseCount(generated, 'GeneratedTokens', refusal),
  };
}

/** `2023-11-16 18:17:03.9799600`: milliseconds with their fractions, UTC. */
function parseStamp(stamp: string, refusal: Refusal): number {
  const match = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(\.\d{1,9})?$/.exec(stamp);
  const wholeMs = match === null ? Number.NaN : Date.parse(`${match[1]}T${match[2]}Z`);
  if (Number.isNaN(wholeMs)) throw refusal('TIMESTAMP', stamp, 'YYYY-MM-DD hh:mm:ss.fraction');
  return wholeMs + Number(match?.[3] ?? 0) * 1_000;
}

function parseCount(text: string | undefined, column: string, refusal: Refusal): number {
  if (text === undefined || !/^\d{1,9}$/.test(text))
    throw refusal(column, text ?? 'nothing', 'a whole number ≥ 0');
  return Number(text);
}

function bad(line: number, column: string, value: string, allowed: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', `the trace is not valid at line ${line}, ${column}`, {
    value,
    allowed,
  });
}

/** How tokens become the size of a request to rank. */
export interface TraceMapping {
  /** Candidates = context tokens / this, rounded up, within [1, candidatesMax]. */
  tokensPerCandidate: number;
  candidatesMax: number;
  /** History rows = generated tokens, at most this. */
  historyRowsMax: number;
}

export const DEFAULT_TRACE_MAPPING: TraceMapping = {
  tokensPerCandidate: 32,
  candidatesMax: 256,
  historyRowsMax: 32,
};

/**
 * Replays a trace for ever: looped, and scaled in time to `ratePerSecond` on average, so that its bursts are kept. The pause between
 * the end of a loop and its next start is the trace's mean pause.
 */
export function* traceArrivals(
  rows: readonly TraceRow[],
  ratePerSecond: number,
  mapping: TraceMapping = DEFAULT_TRACE_MAPPING,
): Generator<Arrival, never, void> {
  const spanMs = rows.at(-1)?.atMs ?? 0;
  const meanMs = rows.length > 1 && spanMs > 0 ? spanMs / (rows.length - 1) : 1;
  const loopMs = rows.length * meanMs;
  const scale = 1_000 / ratePerSecond / meanMs;
  let previousMs = spanMs - loopMs;
  for (;;) {
    for (const row of rows) {
      yield { afterMs: (row.atMs - previousMs) * scale, shape: shapeOf(row, mapping) };
      previousMs = row.atMs;
    }
    previousMs -= loopMs;
  }
}

/** How big a request a row of the trace is. */
export function shapeOf(row: TraceRow, mapping: TraceMapping): Arrival['shape'] {
  return {
    candidates: Math.min(
      mapping.candidatesMax,
      Math.max(1, Math.ceil(row.contextTokens / mapping.tokensPerCandidate)),
    ),
    historyRows: Math.min(mapping.historyRowsMax, row.generatedTokens),
  };
}
