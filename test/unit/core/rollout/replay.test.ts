import { describe, expect, it } from 'vitest';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import {
  arm,
  following,
  healthy,
  healthyLook,
  hold,
  inStage,
  look,
  promote,
  rollBack,
  start,
  type Told,
} from './rollout.fixture.ts';

const seeing = (told: Told, change: object): Told =>
  following(told, look({ ...healthyLook(told), ...change }));

/** A log in which every way of deciding has its place. */
function eventful(): readonly ControllerEvent[] {
  const held = following(inStage(1), hold('lunch'), hold('dinner'), start(2), promote());
  const restarted = healthy(healthy(held, 2), 2, { fingerprint: 'build-2' });
  const harmed = seeing(restarted, { canary: arm(25_000, { errors: 900 }), fingerprint: 'build-2' });
  const again = following(harmed, start(2, { autoPromote: true }, harmed.state.lastMs));
  return following(healthy(again, 20), rollBack()).log;
}

const log = eventful();

const tampered = (change: (event: ControllerEvent) => ControllerEvent | undefined): ControllerEvent[] =>
  log.flatMap((event) => change(event) ?? []);

describe('a log that the rules have written', () => {
  it('is derived again, event by event', () => {
    expect(new Set(log.map(({ type }) => type)).size).toBe(9);
    const { disagreements, pending, confirmed, taken } = replay(log);
    expect({ disagreements, pending, confirmed, taken }).toEqual({
      disagreements: [],
      pending: [],
      confirmed: log.length,
      taken: 0,
    });
  });

  it('with leaderships and refusals among it as well: they are taken as they are', () => {
    const refused = { commandId: 'x', scope: 'policy/feed', actor: 'eve', reason: 'not signed' };
    const longer: ControllerEvent[] = log.flatMap((event) => [
      { type: 'leadership-taken', term: 1 },
      { type: 'command-refused', ...refused },
      event,
    ]);
    expect(replay(longer)).toMatchObject({ disagreements: [], taken: 2 * log.length });
  });
});

describe('a log that somebody changed is found out', () => {
  it.each<[what: string, change: (event: ControllerEvent) => ControllerEvent | undefined]>([
    ['a rollback that is left out', (event) => (event.type === 'rollout-rolled-back' ? undefined : event)],
    ['a restart that is left out', (event) => (event.type === 'stage-restarted' ? undefined : event)],
    [
      'a look that was better than it was',
      (event) =>
        event.type === 'rollout-looked' && event.observation.canary.errors > 0
          ? { ...event, observation: { ...event.observation, canary: arm(25_000) } }
          : event,
    ],
    [
      'an advance that nobody asked for',
      (event) => (event.type === 'rollout-advanced' ? { ...event, commandId: '' } : event),
    ],
    [
      'an override that is left out',
      (event) => (event.type === 'rollout-advanced' ? { ...event, overridden: [] } : event),
    ],
    [
      'an epoch that fell',
      (event) => (event.type === 'rollout-advanced' ? { ...event, epoch: event.epoch - 1 } : event),
    ],
  ])('%s', (_what, change) => {
    expect(replay(tampered(change)).disagreements.length).toBeGreaterThan(0);
  });

  it('and it says where, what is recorded, and what the rules say', () => {
    const index = log.findIndex(({ type }) => type === 'rollout-rolled-back');
    const without = log.filter((_event, place) => place !== index);
    expect(replay(without).disagreements[0]).toMatchObject({
      index,
      recorded: { type: 'rollout-started' },
      derived: { type: 'rollout-rolled-back', reason: expect.stringMatching(/^errors/) },
    });
  });
});

it('what a leader died before it could write is pending, not a disagreement', () => {
  const index = log.findIndex(({ type }) => type === 'rollout-rolled-back');
  const { disagreements, pending } = replay(log.slice(0, index));
  expect(disagreements).toEqual([]);
  expect(pending).toMatchObject([{ type: 'rollout-rolled-back' }]);
});
