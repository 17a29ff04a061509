import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { carriedRequest, schemaOf } from '../../../../src/contracts/headers.ts';
import type { ScoreRequest } from '../../../../src/contracts/records.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { partitionForKey } from '../../../../src/core/request/partition.ts';
import { createSignalExtractor, SIGNALS_VERSION } from '../../../../src/core/signals/extract.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import {
  createExtractor,
  type Extraction,
  featuresRecord,
} from '../../../../src/stages/feature-extractor/extract.ts';
import type { Delivery } from '../../../../src/stages/run-stage.ts';
import { FAMILIES, IDS, ITEM, USER } from '../../core/request/requests.ts';
import { codecs, delivery, inbound, scoreRequest, topics } from '../records.fixture.ts';

/** Reading the signals takes so long on this clock: each look at it is 2 ms after the one before. */
function tickingClock(startMs: number): Clock {
  let nowMs = startMs - 2;
  return {
    wallMs: () => 0,
    monotonicMs: () => {
      nowMs += 2;
      return nowMs;
    },
    after: () => () => {},
    every: () => () => {},
  };
}

function request(fields: Partial<ScoreRequest> = {}): ScoreRequest {
  return scoreRequest({
    requestTensors: [USER],
    candidateTensors: [ITEM],
    candidateIds: IDS,
    ...fields,
  });
}

function extract(of: Delivery<ScoreRequest>, clock = tickingClock(0)): Extraction {
  const extractor = createExtractor(
    {
      families: FAMILIES,
      limits: { ...DEFAULT_REQUEST_LIMITS, contextKeys: new Set(['surface']), resultPartitions: 4 },
    },
    { clock, codecs, signals: createSignalExtractor(new Map()) },
  );
  return extractor(of);
}

function routableOf(extraction: Extraction) {
  if (extraction.status !== 'routable') throw new Error(extraction.result.reason?.message ?? 'ended');
  return extraction.request;
}

function resultOf(extraction: Extraction) {
  if (extraction.status !== 'ended') throw new Error('it is routable');
  return extraction.result;
}

describe('the budget', () => {
  it.each([
    ['of a request that names no deadline is the family’s', null, 0, 100, 98],
    ['is the deadline that the request names', 40, 0, 40, 38],
    ['has the time in the topic taken off', 40, 25, 40, 13],
    ['may be used up already', 40, 60, 40, -22],
  ])('%s', (_name, deadlineMs, inTopicMs, budgetMs, budgetRemainingMs) => {
    const found = routableOf(extract(delivery(request({ deadlineMs }), { inTopicMs })));
    expect(found).toMatchObject({
      budgetMs,
      budgetRemainingMs,
      inTopicMs,
      extractMs: 2,
      extractionUs: 2_000,
    });
  });

  it('has all of the time since the record was received taken off, waiting for a schema included', () => {
    const found = routableOf(
      extract(delivery(request({ deadlineMs: 1_000 }), { receivedAtMs: 500 }), tickingClock(700)),
    );
    expect(found).toMatchObject({ extractMs: 202, budgetRemainingMs: 798, extractionUs: 2_000 });
  });

  it('is what was spent and what is left, whatever the times', () => {
    const anyMs = fc.double({ min: 0, max: 10_000, noNaN: true });
    fc.assert(
      fc.property(anyMs, anyMs, fc.integer({ min: 1, max: 60_000 }), (inTopicMs, waitMs, deadlineMs) => {
        const { budgetMs, budgetRemainingMs, extractMs } = routableOf(
          extract(delivery(request({ deadlineMs }), { inTopicMs }), tickingClock(waitMs)),
        );
        expect(budgetRemainingMs + inTopicMs + extractMs).toBeCloseTo(budgetMs, 6);
      }),
    );
  });
});

describe('a routable request', () => {
  it('carries the signals, and the producer’s hints beside them but never over them', () => {
    const hints = { premium: 1, candidateCount: 99 };
    const { signals, signalsVersion } = routableOf(extract(delivery(request({ hints }))));
    expect(signals).toMatchObject({ premium: 1, candidateCount: 3 });
    expect(signalsVersion).toBe(SIGNALS_VERSION);
  });

  it('carries the original bytes, and where they lay', () => {
    const record = inbound({ partition: 2, offset: 9, value: Buffer.from('the bytes') });
    const found = routableOf(extract(delivery(request(), { record })));
    expect(found.payload).toBe(record.value);
    expect(found.identity).toEqual({ topic: topics.ingress(), partition: 2, offset: 9 });
  });

  it('carries what routing needs of the request', () => {
    const asked = request({
      model: 'ranker@2',
      priority: 1,
      value: 3.5,
      bucketKey: 'user-1',
      region: 'eu',
      baselineCandidates: 1,
      context: { surface: 'feed', secret: 'x' },
      experiments: { layout: 'B' },
      resultPartition: 3,
      explain: true,
    });
    expect(routableOf(extract(delivery(asked)))).toMatchObject({
      requestId: 'r1',
      model: 'ranker',
      modelVersion: '2',
      priority: 1,
      value: 3.5,
      bucketKey: 'user-1',
      region: 'eu',
      candidateCount: 3,
      baselineCandidates: 1,
      context: { surface: 'feed', region: 'eu' },
      experiments: { layout: 'B' },
      resultPartition: 3,
      explain: true,
    });
  });

  it('lies on the features partition of its id', () => {
    const found = routableOf(extract(delivery(request())));
    const record = featuresRecord(found, codecs.for('RoutableRequest'), 'features', 12);
    expect(record).toMatchObject({ topic: 'features', partition: partitionForKey(Buffer.from('r1'), 12) });
    expect(record.key?.toString()).toBe('r1');
    expect(codecs.for('RoutableRequest').decode(record.value)).toMatchObject({
      status: 'ok',
      value: { requestId: 'r1', budgetMs: 100 },
    });
  });

  it('says beside its value what it is written with, and whose it is', () => {
    const record = inbound({ partition: 2, offset: 9 });
    const found = routableOf(extract(delivery(request({ resultPartition: 3 }), { record })));
    const codec = codecs.for('RoutableRequest');
    const { headers = {}, key } = featuresRecord(found, codec, 'features', 12);
    expect(schemaOf(headers)).toBe(schemaOf(codec.headers));
    expect(carriedRequest(inbound({ key, headers }))).toEqual({
      requestId: 'r1',
      identity: { topic: topics.ingress(), partition: 2, offset: 9 },
      resultPartition: 3,
    });
  });

  it.each([
    [
      'the request says',
      { headers: { 'millrace.schema': Buffer.from('0123456789abcdef') } },
      '0123456789abcdef',
    ],
    ['its id stands for', {}, schemaOf(codecs.for('ScoreRequest').headers)],
    [
      'its id stands for, where the header is none',
      { headers: { 'millrace.schema': Buffer.from('?') } },
      schemaOf(codecs.for('ScoreRequest').headers),
    ],
    ['nobody knows', { value: Buffer.alloc(5) }, ''],
  ])('has the fingerprint of its payload that %s', (_what, fields, fingerprint) => {
    const value = codecs.for('ScoreRequest').encode(request());
    const record = inbound({ value, ...fields });
    expect(routableOf(extract(delivery(request(), { record }))).payloadSchema).toBe(fingerprint);
  });
});

describe('a request that is refused', () => {
  it.each<[what: string, fields: Partial<ScoreRequest>, code: string]>([
    ['an unknown model', { model: 'nobody' }, 'UNKNOWN_MODEL'],
    ['an unknown version', { model: 'ranker@9' }, 'UNKNOWN_MODEL'],
    ['a missing input', { requestTensors: [] }, 'INVALID_TENSOR'],
    ['more baseline candidates than there are', { baselineCandidates: 4 }, 'INVALID_REQUEST'],
    ['a partition that results do not have', { resultPartition: 4 }, 'INVALID_REQUEST'],
    ['no id', { requestId: '' }, 'INVALID_REQUEST'],
  ])('for %s ends here, with code, place and times', (_name, fields, code) => {
    const record = inbound({ partition: 2, offset: 9 });
    const result = resultOf(extract(delivery(request(fields), { record, inTopicMs: 5 })));
    expect(result).toMatchObject({
      outcome: 'REJECTED',
      reason: { code, retryable: false },
      identity: { topic: topics.ingress(), partition: 2, offset: 9 },
      timings: { inTopicMs: 5 },
    });
    expect(result.timings.totalMs).toBe(5 + result.timings.extractMs);
  });

  it('is told the time since it was received', () => {
    const late = delivery(request({ model: 'nobody' }), { receivedAtMs: 500 });
    expect(resultOf(extract(late, tickingClock(700))).timings.extractMs).toBeGreaterThanOrEqual(200);
  });

  it('repeats texts that a request may have, and none that would make the answer as large as the request', () => {
    const fine = resultOf(extract(delivery(request({ model: 'nobody', experiments: { a: 'b' } }))));
    expect(fine).toMatchObject({ model: 'nobody', experiments: { a: 'b' } });
    const long = 'x'.repeat(10_000);
    const odd = resultOf(extract(delivery(request({ model: long, experiments: { a: long } }))));
    expect(odd).toMatchObject({ model: '', experiments: {} });
    expect(codecs.for('ScoredResult').encode(odd).length).toBeLessThan(1_000);
  });
});
