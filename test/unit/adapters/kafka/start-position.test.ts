import { describe, expect, it } from 'vitest';
import { startPosition } from '../../../../src/adapters/kafka/start-position.ts';

describe('startPosition', () => {
  it.each([
    {
      what: 'nothing committed, earliest',
      wanted: -1,
      startAt: 'earliest',
      policy: 'latest',
      offset: 10,
      reason: 'nothing committed',
    },
    {
      what: 'nothing committed, latest',
      wanted: -1,
      startAt: 'latest',
      policy: 'earliest',
      offset: 20,
      reason: 'nothing committed',
    },
    {
      what: 'committed inside the log',
      wanted: 15,
      startAt: 'latest',
      policy: 'latest',
      offset: 15,
      reason: 'committed',
    },
    {
      what: 'committed at its start',
      wanted: 10,
      startAt: 'latest',
      policy: 'latest',
      offset: 10,
      reason: 'committed',
    },
    {
      what: 'committed at its end',
      wanted: 20,
      startAt: 'earliest',
      policy: 'earliest',
      offset: 20,
      reason: 'committed',
    },
    {
      what: 'committed and deleted since',
      wanted: 9,
      startAt: 'latest',
      policy: 'earliest',
      offset: 10,
      reason: 'out of range',
    },
    {
      what: 'committed in a log that is gone',
      wanted: 21,
      startAt: 'latest',
      policy: 'earliest',
      offset: 10,
      reason: 'out of range',
    },
    {
      what: 'the same, by the other policy',
      wanted: 21,
      startAt: 'earliest',
      policy: 'latest',
      offset: 20,
      reason: 'out of range',
    },
  ] as const)('$what', ({ wanted, startAt, policy, offset, reason }) => {
    expect(startPosition(wanted, { low: 10, high: 20 }, startAt, policy)).toEqual({ offset, reason });
  });
});
