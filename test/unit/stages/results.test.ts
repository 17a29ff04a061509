import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/core/errors.ts';
import { partitionForKey } from '../../../src/core/request/partition.ts';
import { createResultWriter, endedResult } from '../../../src/stages/results.ts';
import { codecs, resultOf } from './records.fixture.ts';

const identity = { topic: 't', partition: 1, offset: 2 };
const results = createResultWriter(codecs.for('ScoredResult'), 'results', 12);
const ended = (requestId: string, code: ErrorCode = 'BUDGET_EXHAUSTED') =>
  endedResult({ requestId, identity }, { outcome: 'EXPIRED', code, message: 'too late' });

describe('a result', () => {
  it('lies on the partition of its id’s murmur2, as any Kafka client computes it', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (requestId) => {
        const record = results.record(ended(requestId), null);
        expect(record.partition).toBe(partitionForKey(Buffer.from(requestId), 12));
        expect(record.key).toEqual(Buffer.from(requestId));
        expect(resultOf(record).requestId).toBe(requestId);
      }),
    );
  });

  it.each([
    ['its own choice', 7, 7],
    ['the first', 0, 0],
    ['the last', 11, 11],
    ['no such partition: by its id', 12, partitionForKey(Buffer.from('r1'), 12)],
    ['a negative one: by its id', -1, partitionForKey(Buffer.from('r1'), 12)],
  ])('lies where the request asked for: %s', (_name, wanted, partition) => {
    expect(results.record(ended('r1'), wanted).partition).toBe(partition);
  });

  it.each(Object.entries(ERROR_CODES))('says of %s whether trying again can help', (code, { retryable }) => {
    expect(ended('r1', code as ErrorCode).reason).toMatchObject({ code, retryable, message: 'too late' });
  });

  it('can be made, whatever somebody wrote for a reason', () => {
    const ending = {
      outcome: 'DEAD_LETTERED',
      code: 'MODEL_FAILED',
      message: 'x'.repeat(3_000_000),
    } as const;
    const { value } = results.record(endedResult({ requestId: 'r1', identity }, ending), null);
    expect(value?.length).toBeLessThan(5_000);
  });

  it('says when to try again where that is known', () => {
    const ending = { outcome: 'REJECTED', code: 'OVERLOADED', message: 'full', retryAfterMs: 250 } as const;
    expect(endedResult({ requestId: 'r1', identity }, ending).reason?.retryAfterMs).toBe(250);
    expect(ended('r1').reason?.retryAfterMs).toBeNull();
  });

  it('keeps what is known of the request', () => {
    const head = {
      requestId: 'r1',
      identity,
      attempt: 2,
      model: 'ranker',
      baselineCandidates: 9,
      experiments: { a: 'b' },
    };
    const result = endedResult(head, { outcome: 'DEGRADED', code: 'NO_TARGET', message: '' }, { late: true });
    expect(result).toMatchObject({ ...head, outcome: 'DEGRADED', late: true });
  });

  it('that has no scores is told once, however often its record is made', () => {
    const told: string[] = [];
    const writer = createResultWriter(codecs.for('ScoredResult'), 'results', 12, (outcome, code) =>
      told.push(`${outcome} ${code}`),
    );
    writer.record(ended('r1'), null);
    writer.record(ended('r1'), null, true);
    writer.record({ ...ended('r2'), outcome: 'DEGRADED' }, null);
    writer.record({ ...ended('r3'), outcome: 'SCORED', reason: null }, null);
    expect(told).toEqual(['EXPIRED BUDGET_EXHAUSTED']);
  });
});
