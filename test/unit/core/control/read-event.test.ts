import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import { anyEvent } from '../rollout/rollout.arbitrary.ts';
import { NO_REQUESTS, observation, policy, shadow, TERMS } from '../rollout/rollout.fixture.ts';

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

  it.each([
    ['stages without a shadow', { terms: { stages: [{ name: 'canary', percent: 5, dwellMs: 1 }] } }],
    ['no stages', { terms: { stages: [] } }],
    ['more than all', { terms: { stages: [{ name: 'shadow', percent: 101, dwellMs: 1 }] } }],
    ['a time that is none', { atMs: null }],
  ])('of a rollout is not read with %s', (_name, change) => {
    const event = {
      type: 'rollout-started',
      commandId: 'a',
      scope: 'b',
      actor: 'c',
      candidate: { digest: 'd', name: 'n', version: 1 },
      terms: TERMS,
      salt: 's',
      atMs: 1,
      epoch: 1,
    };
    expect(readControllerEvent(JSON.stringify(event))).toEqual(event);
    const terms = { ...TERMS, ...('terms' in change ? change.terms : {}) };
    expect(readControllerEvent(JSON.stringify({ ...event, ...change, terms }))).toBeUndefined();
  });

  it.each([
    ['more errors than requests', { canary: { ...NO_REQUESTS, errors: 1 } }],
    ['half a request', { canary: { ...NO_REQUESTS, requests: 0.5 } }],
    ['a window without length', { windowMs: 0 }],
    ['two quantiles', { stableLatencyMs: [1, 2] }],
    ['a hit that is no count', { shadow: shadow({ leaves: { rest: -1 } }) }],
  ])('of a look is not read with %s', (_name, change) => {
    const event = { type: 'rollout-looked', commandId: '', scope: 'b', actor: 'c' };
    const seen = observation(5);
    expect(readControllerEvent(JSON.stringify({ ...event, observation: seen }))).toEqual({
      ...event,
      observation: seen,
    });
    const evidence = JSON.stringify({ ...event, observation: { ...seen, ...change } });
    expect(readControllerEvent(evidence)).toBeUndefined();
  });

  it('of an older version has what it lacks filled in', () => {
    const cause = { commandId: 'a', scope: 'b', actor: 'c', policy: policy(1), epoch: 3 };
    const published = { type: 'policy-published', ...cause };
    expect(readControllerEvent(JSON.stringify(published))).toEqual({ ...published, live: true });
    const rolledBack = { type: 'policy-rolled-back', ...cause, from: policy(2) };
    expect(readControllerEvent(JSON.stringify(rolledBack))).toEqual({ ...rolledBack, atMs: 0 });
  });

  it('never makes the reader throw', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        readControllerEvent(json);
      }),
    );
  });
});
