import { describe, expect, it } from 'vitest';
import {
  noteUnreadable,
  REFUSED_ONE_BY_ONE_MAX,
  recordsOfRefused,
} from '../../../../src/adapters/kafka/unreadable.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type { Unreadable } from '../../../../src/ports/message-bus.ts';
import { record } from './records.ts';

const AT = { topic: 't', partition: 1, timestampMs: 5, assignment: 2 };
const refused = (firstOffset: number, lastOffset: number): Unreadable => ({
  code: 'TOO_LARGE',
  reason: 'unpacks to much',
  firstOffset,
  lastOffset,
  digest: 'ff',
});

describe('a refused batch', () => {
  it.each([
    ['all of its offsets', 0, 9, 0, [...Array(10).keys()]],
    ['those from the position on', 0, 9, 7, [7, 8, 9]],
    ['one by one as long as they are not too many', 1, REFUSED_ONE_BY_ONE_MAX, 9_998, [9_998, 9_999, 10_000]],
    ['the last alone of very many', 5, 5 + REFUSED_ONE_BY_ONE_MAX, 5, [10_005]],
    ['the last alone of what a batch may say', 0, 2 ** 31 - 1, 0, [2 ** 31 - 1]],
  ])('is delivered as %s', (_, first, last, from, expected) => {
    const records = recordsOfRefused(refused(first, last), from, AT);
    expect(records.map(({ offset }) => offset)).toEqual(expected);
    expect(records[0]).toMatchObject({ ...AT, key: null, value: null, headers: {} });
  });

  it('is counted and logged once, and the records around it are left', () => {
    const telemetry = silentTelemetry();
    const lines: string[] = [];
    const counted: number[] = [];
    const logger = { ...telemetry.logger, error: (_: unknown, message: string) => lines.push(message) };
    const records = [
      record(0),
      ...recordsOfRefused(refused(1, 4), 2, AT),
      ...recordsOfRefused(refused(5, 2_000_004), 5, AT),
      record(2_000_005),
    ];
    const left = noteUnreadable(records, { logger, onUnreadable: (offsets) => counted.push(offsets) });
    expect(left).toEqual([records[0], records.at(-1)]);
    expect(counted).toEqual([3, 2_000_000]);
    expect(lines).toHaveLength(2);
  });
});
