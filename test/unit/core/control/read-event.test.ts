import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ControllerEvent } from '../../../../src/core/control/controller-state.ts';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';

const count = fc.nat(1_000_000);
const text = fc.string({ maxLength: 20 });
const policy = fc.record({ digest: text, name: text, version: count });
const cause = { commandId: text, scope: text, actor: text };
const anyEvent: fc.Arbitrary<ControllerEvent> = fc.oneof(
  fc.record({ type: fc.constant('leadership-taken' as const), term: count }),
  fc.record({ type: fc.constant('policy-published' as const), ...cause, policy, epoch: count }),
  fc.record({
    type: fc.constant('policy-rolled-back' as const),
    ...cause,
    from: policy,
    policy,
    epoch: count,
  }),
  fc.record({ type: fc.constant('store-reseeded' as const), ...cause, epoch: count }),
  fc.record({ type: fc.constant('command-refused' as const), ...cause, reason: text }),
);

describe('an event in the log', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        expect(readControllerEvent(JSON.stringify(event))).toEqual(event);
      }),
    );
  });

  it.each([
    ['no JSON', 'not JSON'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    [
      'a type that this version does not know',
      '{"type":"canary-started","commandId":"a","scope":"b","actor":"c","epoch":1}',
    ],
    ['a term that is no count', '{"type":"leadership-taken","term":-1}'],
    ['no actor', '{"type":"store-reseeded","commandId":"a","scope":"b","epoch":1}'],
    ['no epoch', '{"type":"store-reseeded","commandId":"a","scope":"b","actor":"c"}'],
    ['half an epoch', '{"type":"store-reseeded","commandId":"a","scope":"b","actor":"c","epoch":1.5}'],
    ['no policy', '{"type":"policy-published","commandId":"a","scope":"b","actor":"c","epoch":1}'],
    ['no reason', '{"type":"command-refused","commandId":"a","scope":"b","actor":"c"}'],
    [
      'no policy before it',
      '{"type":"policy-rolled-back","commandId":"a","scope":"b","actor":"c","epoch":1,"policy":{"digest":"d","name":"n","version":1}}',
    ],
  ])('that is none is not read: %s', (_name, evidence) => {
    expect(readControllerEvent(evidence)).toBeUndefined();
  });

  it('never makes the reader throw', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        readControllerEvent(json);
      }),
    );
  });
});
