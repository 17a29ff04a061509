import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  readPromote,
  readReason,
  readRollBack,
  readStart,
  readTune,
} from '../../../../src/core/control/read-body.ts';
import { MillraceError } from '../../../../src/core/errors.ts';

const readers: [type: string, read: (body: string) => unknown][] = [
  ['START', readStart],
  ['PROMOTE', readPromote],
  ['HOLD', (body) => readReason('HOLD', body)],
  ['ABORT', (body) => readReason('ABORT', body)],
  ['ROLL_BACK', readRollBack],
  ['TUNE', readTune],
];
const reader = new Map(readers);

describe('the body of a command', () => {
  it.each([
    [
      'START',
      '{"version": 7}',
      { version: 7, waivedLeaves: [], autoPromote: undefined, autoRollback: undefined },
    ],
    [
      'START',
      '{"version": 7, "waive": {"leaves": ["a"]}, "autoPromote": true, "autoRollback": false}',
      { version: 7, waivedLeaves: ['a'], autoPromote: true, autoRollback: false },
    ],
    [
      'START',
      '{"version": 7, "waive": {"leaves": ["a", "b", "a"]}}',
      { version: 7, waivedLeaves: ['a', 'b'], autoPromote: undefined, autoRollback: undefined },
    ],
    ['PROMOTE', '', { to: 'next', overHold: false }],
    ['PROMOTE', '{}', { to: 'next', overHold: false }],
    ['PROMOTE', '{"to": "live", "overHold": true}', { to: 'live', overHold: true }],
    ['HOLD', '{"reason": "lunch"}', 'lunch'],
    ['ABORT', '', 'no reason was given'],
    ['ABORT', `{"reason": "${'x'.repeat(2_000)}"}`, 'x'.repeat(1_000)],
    ['TUNE', '{"name": "edge", "value": -0}', { name: 'edge', value: 0 }],
    ['ROLL_BACK', '', undefined],
    ['ROLL_BACK', ' 7\n', 7],
    ['ROLL_BACK', '2147483647', 2_147_483_647],
    ['ROLL_BACK', '{"version": 7}', 7],
    ['ROLL_BACK', '{}', undefined],
  ])('%s %s is read', (type, body, read) => {
    expect(reader.get(type)?.(body)).toEqual(read);
  });

  it.each([
    ['START', ''],
    ['START', '7'],
    ['START', '{"version": "7"}'],
    ['START', '{"version": 7, "waved": {}}'],
    ['START', '{"version": 7, "waive": {"leafs": ["a"]}}'],
    ['START', '{"version": 7, "autoPromote": 1}'],
    ['PROMOTE', '{"to": "canary"}'],
    ['PROMOTE', 'live'],
    ['HOLD', '{"reason": 5}'],
    ['ABORT', '[]'],
    ['ROLL_BACK', 'latest'],
    ['ROLL_BACK', '-1'],
    ['ROLL_BACK', '{"version": 1.5}'],
  ])('%s %s is refused, with what would be allowed', (type, body) => {
    expect(() => reader.get(type)?.(body)).toThrow(/does not take this body \(got .*; allowed: /);
  });

  it.each(readers)('of %s is read or refused, whatever it is', (_type, read) => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
        try {
          read(body);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
    );
  });
});
