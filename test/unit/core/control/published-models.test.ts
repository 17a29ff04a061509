import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ControllerCommand } from '../../../../src/core/control/controller-command.ts';
import {
  type ControllerState,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../../../src/core/control/controller-state.ts';
import { catalogueEpoch, policiesInUse } from '../../../../src/core/control/published-models.ts';
import type { PublishedModel } from '../../../../src/core/model/published-model.ts';
import { publishedModel } from '../model/model.fixture.ts';
import { anyEvent } from '../rollout/rollout.arbitrary.ts';

const publish = (model: PublishedModel, commandId: string): ControllerCommand => ({
  kind: 'publish-model',
  commandId,
  scope: `model/${model.family}`,
  actor: 'ana',
  model,
});

function given(...commands: ControllerCommand[]): ControllerState {
  let state = INITIAL_CONTROLLER_STATE;
  for (const command of commands) for (const event of decide(state, command)) state = evolve(state, event);
  return state;
}

describe('publishing a model version', () => {
  const model = publishedModel('3');

  it('puts it into the catalogue, at the next epoch of that', () => {
    expect(decide(given(), publish(model, 'a'))).toEqual([
      { type: 'model-published', commandId: 'a', scope: 'model/ranker', actor: 'ana', model, epoch: 1 },
    ]);
    expect(given(publish(model, 'a'), publish(publishedModel('2'), 'b')).models).toEqual([
      { model, publication: 1 },
      { model: publishedModel('2'), publication: 2 },
    ]);
  });

  it('sent twice acts once', () => {
    expect(decide(given(publish(model, 'a')), publish(model, 'a'))).toEqual([]);
  });

  it('again says where it lies now', () => {
    const moved = { ...model, source: 'https://models.example/3/' };
    const state = given(publish(model, 'a'), publish(moved, 'b'));
    expect(state.models).toEqual([{ model: moved, publication: 2 }]);
    expect(catalogueEpoch(state)).toBe(2);
  });

  it('with other files under its name is refused', () => {
    const other = publishedModel('3', { 'config.yaml': 'format: 1', 'model.onnx': 'another graph' });
    const [event] = decide(given(publish(model, 'a')), publish(other, 'b'));
    expect(event).toMatchObject({
      type: 'command-refused',
      reason: expect.stringMatching(/ranker@3 is already published with another digest.*higher version/),
    });
  });
});

describe('the epoch of the catalogue', () => {
  it('never falls, whatever happens', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let state = INITIAL_CONTROLLER_STATE;
        for (const event of events) {
          // of a real log: an epoch is above the one before
          const before = 'scope' in event ? scopeState(state, event.scope).epoch : 0;
          const next = evolve(state, 'epoch' in event ? { ...event, epoch: before + 1 } : event);
          expect(catalogueEpoch(next)).toBeGreaterThanOrEqual(catalogueEpoch(state));
          state = next;
        }
      }),
    );
  });
});

describe('policies in use', () => {
  const policy = (version: number): ControllerCommand => ({
    kind: 'publish-policy',
    commandId: `p${version}`,
    scope: 'policy/feed',
    actor: 'ana',
    policy: { digest: `d${version}`, name: 'feed', version },
    mode: version < 5 ? 'immediate' : 'staged',
    start: undefined,
  });

  it('are the live one, the one before it, and those that wait', () => {
    const state = given(...[1, 2, 3, 4, 5, 6].map(policy));
    expect(policiesInUse(scopeState(state, 'policy/feed')).map(({ version }) => version)).toEqual([
      3, 4, 5, 6,
    ]);
  });

  it('are those that a rollback went from, and goes to, as well', () => {
    const back = { kind: 'roll-back', commandId: 'b', scope: 'policy/feed', actor: 'ana', atMs: 0 } as const;
    const state = given(...[1, 2, 3, 4].map(policy), { ...back, toVersion: undefined });
    expect(policiesInUse(scopeState(state, 'policy/feed')).map(({ version }) => version)).toEqual([2, 3, 4]);
  });
});
