import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { captureCorpus } from '../../../../src/traffic/import/capture-corpus.ts';
import { checkTrace, importerOf, trafficImporters } from '../../../../src/traffic/import/importers.ts';
import { rateCsv } from '../../../../src/traffic/import/rate-csv.ts';
import { readSpotAvailability } from '../../../../src/traffic/import/spot-availability-json.ts';
import { TraceFile } from '../../../../src/traffic/import/trace-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-traces-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What is left afterwards is kept by somebody. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

function fileOf(content: string): TraceFile {
  const path = join(folder, 'trace');
  writeFileSync(path, content);
  return new TraceFile(path);
}

function read(content: string) {
  const file = fileOf(content);
  const importer = importerOf(file, trafficImporters());
  return { summary: checkTrace(file, importer), rows: [...importer.rows(file)] };
}

const INFERENCE = 'TIMESTAMP,ContextTokens,GeneratedTokens\n';

describe('a trace of traffic', () => {
  it('is read by its first line, whatever its line ends, empty lines and times', () => {
    expect(read('timestamp,value\r\n\r\n2026-01-01 00:00:00.5,10\r\n2026-01-01T00:00:02.5Z,2e1\r\n')).toEqual(
      {
        summary: { kind: 'rate', rows: 2, spanMs: 2_000, meanPerSecond: 10 },
        rows: [
          { kind: 'rate', atMs: 0, perSecond: 10 },
          { kind: 'rate', atMs: 2_000, perSecond: 20 },
        ],
      },
    );
    expect(read(`${INFERENCE}2023-11-16 18:17:03.25,64,3\n2023-11-16 18:17:04,6400000,3`).rows).toEqual([
      { kind: 'request', atMs: 0, shape: { candidates: 2, historyRows: 3 } },
      { kind: 'request', atMs: 750, shape: { candidates: 256, historyRows: 3 } },
    ]);
    expect(read('{"signals": {"candidateCount": 7, "sequenceLength": null}, "leaf": "rest"}\n').rows).toEqual(
      [{ kind: 'shape', shape: { candidates: 7, historyRows: 0 } }],
    );
  });

  it('has the mean of its rates, each for as long as it held', () => {
    expect(read('timestamp,value\n0,100\n1,10\n10,999\n').summary.meanPerSecond).toBeCloseTo(19, 9);
  });

  it.each([
    ['empty', '', /of no format that is known.*"an empty file".*timestamp,value \(rate-csv\)/],
    ['of no format', 'a,b,c\n1,2,3\n', /of no format.*"a,b,c"/],
    ['of a missing column', 'timestamp\n1\n', /of no format/],
    ['with a header alone', 'timestamp,value\n', /holds no row.*rate-csv/],
    [
      'with a column too few',
      'timestamp,value\n0,1\n5\n',
      /line 3, columns \(got "1"; allowed: 2: timestamp,value\)/,
    ],
    ['with NaN', 'timestamp,value\n0,NaN\n', /line 2, value \(got "NaN"; allowed: requests per second, 0 … /],
    ['with infinity', 'timestamp,value\n0,1e999\n', /line 2, value/],
    ['with a negative rate', 'timestamp,value\n0,1\n\n1,-1\n', /line 4, value \(got "-1"/],
    ['with a negative time', 'timestamp,value\n-1,1\n', /line 2, timestamp \(got "-1"; allowed: YYYY/],
    [
      'that goes back',
      'timestamp,value\n5,1\n4,1\n',
      /line 3, timestamp \(got "4"; allowed: time stamps that rise/,
    ],
    ['with no time stamp', `${INFERENCE}noon,1,1\n`, /line 2, TIMESTAMP \(got "noon"/],
    [
      'of requests that go back',
      `${INFERENCE}2023-11-16 18:17:04,1,1\n2023-11-16 18:17:03,1,1\n`,
      /line 3, TIMESTAMP .*do not go back/,
    ],
    ['with a negative size', `${INFERENCE}2023-11-16 18:17:04,-1,1\n`, /line 2, ContextTokens \(got "-1"/],
    [
      'of signals that are no JSON',
      '{"signals": {}}\n{"signals"\n',
      /line 2, the line .*one JSON object per line/,
    ],
    ['without signals', '{"signals": {}}\n{"context": {}}\n', /line 2, signals/],
    [
      'with half a candidate',
      '{"signals": {"candidateCount": 1.5}}\n',
      /line 1, signals\.candidateCount \(got "1\.5"; allowed: a whole number, 1 … 4096/,
    ],
    [
      'with a line without end',
      `timestamp,value\n${'7'.repeat(300_000)}`,
      /line 2, the line \(got "more than 100000 characters"/,
    ],
  ])('%s is refused, with line, column and what is allowed', (_what, content, message) => {
    expect(() => read(content)).toThrow(message);
  });

  it('that is no file is not opened: a pipe would hold it up for ever', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of ['/dev/zero', pipe, folder])
      expect(() => [...new TraceFile(path).lines()]).toThrow(/no file that can be read twice/);
  });

  it('of one line without end is not read to its end', { timeout: 10_000 }, () => {
    const file = fileOf('timestamp,value\n');
    truncateSync(file.path, 2 ** 30);
    expect(() => [...file.lines()]).toThrow(/line 2, the line .*at most 100000 characters/);
  });

  it('of many lines takes no memory for those that are past', () => {
    const file = fileOf(
      `timestamp,value\n${Array.from({ length: 300_000 }, (_, n) => `${n},1`).join('\n')}\n`,
    );
    const kept: number[] = [];
    for (const { atMs } of rateCsv.rows(file) as Iterable<{ atMs: number }>) {
      if (atMs % 100_000_000 !== 0) continue;
      collectGarbage();
      kept.push(process.memoryUsage().heapUsed);
    }
    const [first = 0, ...more] = kept;
    expect(more).toHaveLength(2);
    // A hundred thousand lines of nine characters each are several times that.
    expect(Math.max(...more) - first).toBeLessThan(1.5e6);
  });

  it('whatever is in it, is read or refused in words', () => {
    const cell = fc.oneof(
      fc.constantFrom('', '0', '1', '-1', 'NaN', '1e9', '"', '2026-01-01 00:00:00'),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(rateCsv, captureCorpus, ...trafficImporters()),
        fc.array(fc.array(cell, { maxLength: 4 }), { maxLength: 5 }),
        (importer, lines) => {
          const file = fileOf(lines.map((cells) => cells.join(',')).join('\n'));
          try {
            let lastMs = 0;
            for (const row of importer.rows(file)) {
              if (row.kind === 'shape') continue;
              expect(row.atMs).toBeGreaterThanOrEqual(lastMs);
              lastMs = row.atMs;
            }
          } catch (error) {
            expect(error).toBeInstanceOf(MillraceError);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a record of spot availability', () => {
  const spot = (content: string) => readSpotAvailability(fileOf(content).path);

  it('gives the moments at which it changes', () => {
    expect(spot('{"metadata": {"gap_seconds": 600, "region": "x"}, "data": [2, 2, 0, 1]}')).toEqual([
      { atMs: 0, instances: 2 },
      { atMs: 1_200_000, instances: 0 },
      { atMs: 1_800_000, instances: 1 },
    ]);
  });

  it.each([
    ['empty', '', /no record of spot availability, the document/],
    ['without a gap', '{"metadata": {}, "data": [1]}', /metadata\.gap_seconds .*gap_seconds": 600/],
    [
      'with a gap of nothing',
      '{"metadata": {"gap_seconds": 0}, "data": [1]}',
      /metadata\.gap_seconds \(got "0"/,
    ],
    ['without data', '{"metadata": {"gap_seconds": 1}, "data": []}', /, data/],
    ['with a negative number', '{"metadata": {"gap_seconds": 1}, "data": [1, -1]}', /data\.1 \(got "-1"/],
    ['with half of one', '{"metadata": {"gap_seconds": 1}, "data": [0.5]}', /data\.0 \(got "0\.5"/],
    ['with null', '{"metadata": {"gap_seconds": 1}, "data": [null]}', /data\.0 \(got "null"/],
    ['of another kind', '[]', /the document \(got/],
  ])('%s is refused with its place', (_what, content, message) => {
    expect(() => spot(content)).toThrow(message);
  });

  it('that is too large is not read', () => {
    expect(() => spot(' '.repeat(16 * 2 ** 20 + 1))).toThrow(/too large/);
  });
});
