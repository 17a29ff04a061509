import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_TRACE_MAPPING,
  parseTraceInferenceCsv,
  type TraceRow,
  traceArrivals,
} from '../../../src/traffic/trace-inference-csv.ts';

const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const row = (atMs: number, contextTokens = 32, generatedTokens = 1): TraceRow => ({
  atMs,
  contextTokens,
  generatedTokens,
});

function first(rows: readonly TraceRow[], count: number, ratePerSecond = 1) {
  const arrivals = traceArrivals(rows, ratePerSecond);
  return Array.from({ length: count }, () => arrivals.next().value);
}

describe('a trace', () => {
  it('is read with the fractions of its time stamps, whatever the line ends', () => {
    const lines = [
      HEADER,
      '2023-11-16 18:17:03.9799600,4808,10',
      '',
      '2023-11-16 18:17:04.0319609,3180,8',
      '2023-11-16 18:18:04,0,0',
    ];
    for (const end of ['\n', '\r\n']) {
      const rows = parseTraceInferenceCsv(lines.join(end));
      expect(rows.map(({ contextTokens, generatedTokens }) => [contextTokens, generatedTokens])).toEqual([
        [4808, 10],
        [3180, 8],
        [0, 0],
      ]);
      for (const [place, atMs] of [0, 52.0009, 60_020.04].entries())
        expect(rows[place]?.atMs).toBeCloseTo(atMs, 3);
    }
  });

  it('of the examples is one', () => {
    const rows = parseTraceInferenceCsv(readFileSync('examples/traces/azure-llm-inference-code.csv', 'utf8'));
    expect(rows.length).toBeGreaterThan(100);
    expect(rows.every(({ atMs }, place) => place === 0 || atMs >= (rows[place - 1]?.atMs ?? 0))).toBe(true);
  });

  it.each([
    ['another header', ['a,b,c'], /line 1, header.*allowed: TIMESTAMP,ContextTokens,GeneratedTokens/],
    ['no rows', [HEADER], /line 2, rows/],
    ['no time stamp', [HEADER, 'x,1,2'], /line 2, TIMESTAMP.*got "x".*YYYY-MM-DD/],
    ['a day that is none', [HEADER, '2023-13-41 18:17:03,1,2'], /line 2, TIMESTAMP/],
    [
      'time that goes back',
      [HEADER, '2023-11-16 18:17:03,1,2', '2023-11-16 18:17:02,1,2'],
      /line 3, TIMESTAMP.*do not go back/,
    ],
    ['a count that is none', [HEADER, '2023-11-16 18:17:03,-1,2'], /line 2, ContextTokens.*got "-1"/],
    ['a count that is missing', [HEADER, '2023-11-16 18:17:03,1'], /line 2, GeneratedTokens.*nothing/],
    ['too many columns', [HEADER, '2023-11-16 18:17:03,1,2,3'], /line 2, columns.*got "4"/],
    ['an endless line', [HEADER, 'x'.repeat(1_001)], /line 2, line.*1001 characters/],
  ])('that is none is refused with line, column and what is allowed: %s', (_name, lines, message) => {
    expect(() => parseTraceInferenceCsv(lines.join('\n'))).toThrow(message);
  });
});

describe('a replay', () => {
  it('keeps the pauses in proportion, and loops with the mean pause in between', () => {
    const rows = [row(0), row(100), row(100), row(300)];
    expect(first(rows, 9, 10).map((arrival) => Math.round(arrival?.afterMs ?? -1))).toEqual([
      100, 100, 0, 200, 100, 100, 0, 200, 100,
    ]);
  });

  it('has the rate asked for, whatever the trace, also where all of it came at once', () => {
    const anyRows = fc
      .array(fc.double({ min: 0, max: 1_000, noNaN: true }), { minLength: 1, maxLength: 20 })
      .map((gaps) => {
        let atMs = 0;
        return gaps.map((gap, place) => {
          atMs += place === 0 ? 0 : Math.round(gap);
          return row(atMs);
        });
      });
    fc.assert(
      fc.property(anyRows, fc.integer({ min: 1, max: 1_000 }), (rows, rate) => {
        const loops = 3;
        const passedMs = first(rows, rows.length * loops, rate).reduce(
          (sum, arrival) => sum + (arrival?.afterMs ?? 0),
          0,
        );
        expect((rows.length * loops * 1_000) / passedMs).toBeCloseTo(rate, 3);
      }),
    );
  });

  it.each([
    [0, 0, 1, 0],
    [1, 1, 1, 1],
    [33, 5, 2, 5],
    [1_000_000, 1_000, DEFAULT_TRACE_MAPPING.candidatesMax, DEFAULT_TRACE_MAPPING.historyRowsMax],
  ])('makes %d and %d tokens %d candidates and %d rows', (context, generated, candidates, historyRows) => {
    expect(first([row(0, context, generated)], 1)[0]?.shape).toEqual({ candidates, historyRows });
  });
});
