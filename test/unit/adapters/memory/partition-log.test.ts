import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  PartitionLog,
  recordBytes,
  type StoredRecord,
} from '../../../../src/adapters/memory/partition-log.ts';
import { Watched } from '../../alive.fixture.ts';

const record = (key: string | null, value: string | null) => ({
  topic: 't',
  partition: 0,
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
});

type Step =
  | { kind: 'append'; key: string; value: string | null }
  | { kind: 'expire'; beforeMs: number }
  | { kind: 'compact'; tombstonesUntilMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      value: fc.option(fc.string({ maxLength: 4 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('expire' as const), beforeMs: fc.nat({ max: 200 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('compact' as const), tombstonesUntilMs: fc.nat({ max: 200 }) }),
  },
);

interface Kept {
  offset: number;
  key: string;
  value: string | null;
  storedAtMs: number;
}

/** The simplest log that does the same. */
class ModelLog {
  kept: Kept[] = [];
  high = 0;
  low = 0;

  take(step: Step, nowMs: number): void {
    if (step.kind === 'append') {
      this.kept.push({ offset: this.high++, key: step.key, value: step.value, storedAtMs: nowMs });
    } else if (step.kind === 'expire') {
      while (this.kept[0] !== undefined && this.kept[0].storedAtMs < step.beforeMs) {
        this.low = this.kept[0].offset + 1;
        this.kept.shift();
      }
    } else {
      this.kept = this.kept.filter((record, i) => {
        const isLast = !this.kept.slice(i + 1).some((later) => later.key === record.key);
        return isLast && !(record.value === null && record.storedAtMs <= step.tombstonesUntilMs);
      });
    }
  }
}

function take(log: PartitionLog, step: Step, nowMs: number): void {
  if (step.kind === 'append') {
    const appended = record(step.key, step.value);
    log.append(appended, recordBytes(appended), 1_000 + nowMs, nowMs);
  } else if (step.kind === 'expire') log.expire(({ storedAtMs }) => storedAtMs < step.beforeMs);
  else log.compact(step.tombstonesUntilMs);
}

const plain = ({ offset, key, value, storedAtMs }: StoredRecord): Kept => ({
  offset,
  key: key?.toString() ?? '',
  value: value === null ? null : value.toString(),
  storedAtMs,
});

describe('PartitionLog', () => {
  it('keeps what a simple list would keep, through appends, retention and compaction', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.nat({ max: 220 }), (steps, from) => {
        const log = new PartitionLog();
        const model = new ModelLog();
        steps.forEach((each, nowMs) => {
          take(log, each, nowMs);
          model.take(each, nowMs);
        });
        expect(log.high).toBe(model.high);
        expect(log.low).toBe(model.low);
        expect(log.read(0, Infinity, Infinity, Infinity).map(plain)).toEqual(model.kept);
        const after = model.kept.filter(({ offset }) => offset >= from);
        expect(log.read(from, Infinity, Infinity, Infinity).map(plain)).toEqual(after);
        expect(log.at(from)?.offset).toBe(after[0]?.offset);
        expect(log.retainedBytes === 0).toBe(model.kept.length === 0);
      }),
    );
  });

  it('cuts off dead records in long logs without losing its place', () => {
    const log = new PartitionLog();
    for (let i = 0; i < 5_000; i++) log.append(record(null, `${i}`), 100, i, i);
    for (const low of [1, 1_023, 1_024, 2_500, 4_999]) {
      log.expire(({ offset }) => offset < low);
      expect(log.low).toBe(low);
      expect(log.at(low)?.value?.toString()).toBe(`${low}`);
      expect(log.read(4_990, 100, Infinity, Infinity)).toHaveLength(5_000 - Math.max(low, 4_990));
    }
  });

  it('lets go at once of what has expired, however much is left', async () => {
    const log = new PartitionLog();
    const watched = new Watched();
    for (let i = 0; i < 1_000; i++) log.append(record(null, `${i}`), 100, i, i);
    for (const stored of log.read(0, 1_000, Infinity, Infinity)) watched.add(stored);
    log.expire(({ offset }) => offset < 100);
    expect({ letGo: await watched.areAlive(900), first: log.oldest()?.offset }).toEqual({
      letGo: true,
      first: 100,
    });
  });

  it.each([
    { what: 'the count', limits: [2, Infinity, Infinity], offsets: [1, 2] },
    { what: 'the bytes', limits: [9, 250, Infinity], offsets: [1, 2] },
    { what: 'the bytes, but one record at least', limits: [9, 1, Infinity], offsets: [1] },
    { what: 'the time of storing', limits: [9, Infinity, 3], offsets: [1, 2, 3] },
    { what: 'nothing', limits: [9, Infinity, Infinity], offsets: [1, 2, 3, 4] },
    { what: 'a count of 0', limits: [0, Infinity, Infinity], offsets: [] },
  ])('reads within $what', ({ limits, offsets }) => {
    const log = new PartitionLog();
    for (let i = 0; i < 5; i++) log.append(record(null, 'v'), 100, i, i);
    const [count = 0, bytes = 0, storedUntilMs = 0] = limits;
    expect(log.read(1, count, bytes, storedUntilMs).map(({ offset }) => offset)).toEqual(offsets);
  });
});

describe('recordBytes', () => {
  it('counts key, value and headers', () => {
    const bare = recordBytes(record(null, null));
    expect(recordBytes(record('abc', 'de'))).toBe(bare + 5);
    expect(recordBytes({ ...record(null, null), headers: { name: Buffer.from('value') } })).toBe(
      bare + 4 + 5 + 2,
    );
  });
});
