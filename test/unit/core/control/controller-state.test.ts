import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ControllerCommand } from '../../../../src/core/control/controller-command.ts';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import {
  type ControllerState,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../../../src/core/control/controller-state.ts';
import { catalogueEpoch } from '../../../../src/core/control/published-models.ts';
import { CATALOGUE_SCOPE } from '../../../../src/core/model/catalogue.ts';
import { publishedModel } from '../model/model.fixture.ts';

const scope = 'policy/feed';
const policy = (version: number, digest = `d${version}`) => ({ digest, name: 'feed', version });
const publish = (version: number, commandId = `p${version}`, digest?: string): ControllerCommand => ({
  kind: 'publish-policy',
  commandId,
  scope,
  actor: 'ana',
  policy: policy(version, digest),
  mode: 'immediate',
  start: undefined,
});
const rollBack = (toVersion?: number, commandId = `r${toVersion}`): ControllerCommand => ({
  kind: 'roll-back',
  commandId,
  scope,
  actor: 'ana',
  toVersion,
  atMs: 0,
});

function given(...commands: ControllerCommand[]): ControllerState {
  let state = INITIAL_CONTROLLER_STATE;
  for (const command of commands) for (const event of decide(state, command)) state = evolve(state, event);
  return state;
}

function when(state: ControllerState, command: ControllerCommand): readonly ControllerEvent[] {
  return decide(state, command);
}

const reseed = (above: number | undefined, of: string, commandId = 's'): ControllerCommand => ({
  kind: 'reseed',
  commandId,
  scope: of,
  actor: 'ana',
  ...(above !== undefined && { above }),
});
const publishModel: ControllerCommand = {
  kind: 'publish-model',
  commandId: 'm3',
  scope: 'model/ranker',
  actor: 'ana',
  model: publishedModel('3'),
};

describe('a reseed', () => {
  it.each([
    { of: scope, own: 2, above: undefined, epoch: 3 },
    { of: scope, own: 2, above: 1, epoch: 3 },
    { of: scope, own: 2, above: 2, epoch: 3 },
    { of: scope, own: 2, above: 40, epoch: 41 },
    { of: CATALOGUE_SCOPE, own: 5, above: undefined, epoch: 6 },
    { of: CATALOGUE_SCOPE, own: 5, above: 5, epoch: 6 },
    { of: CATALOGUE_SCOPE, own: 5, above: 40, epoch: 41 },
  ])('of $of at epoch $own, above $above, is epoch $epoch', ({ of, own, above, epoch }) => {
    const state = given(publish(1), publish(2), publishModel);
    const epochOf = (at: ControllerState): number =>
      of === scope ? scopeState(at, scope).epoch : catalogueEpoch(at);
    expect(epochOf(state)).toBe(own);
    const told = when(state, reseed(above, of));
    expect(told).toEqual([{ type: 'store-reseeded', commandId: 's', scope: of, actor: 'ana', epoch }]);
    const after = told.reduce(evolve, state);
    expect(epochOf(after)).toBe(epoch);
    expect(after.scopes.get(scope)).toEqual({
      ...state.scopes.get(scope),
      epoch: scopeState(after, scope).epoch,
    });
    expect(after.scopes.has(CATALOGUE_SCOPE)).toBe(false);
    // Asked once.
    expect(when(after, reseed(above, of))).toEqual([]);
    expect(
      epochOf(given(publish(1), publish(2), publishModel, reseed(above, of), publish(3))),
    ).toBeGreaterThan(epoch);
  });

  it('of a catalogue that has nothing is refused', () => {
    expect(when(given(publish(1)), reseed(7, CATALOGUE_SCOPE))).toMatchObject([
      { type: 'command-refused', reason: 'nothing was ever published in models' },
    ]);
  });
});

describe('given, when, then', () => {
  it('the first version goes live at epoch 1', () => {
    expect(when(given(), publish(1))).toEqual([
      {
        type: 'policy-published',
        commandId: 'p1',
        scope,
        actor: 'ana',
        policy: policy(1),
        live: true,
        start: undefined,
        epoch: 1,
      },
    ]);
  });

  it('a rollback is a new, higher epoch that names the old policy', () => {
    const state = given(publish(1), publish(2));
    const [event] = when(state, rollBack());
    expect(event).toMatchObject({ type: 'policy-rolled-back', from: policy(2), policy: policy(1), epoch: 3 });
  });

  it.each([
    ['the one before', [1, 2, 3], [], 2],
    ['one below that, the second time', [1, 2, 3], [undefined], 1],
    ['where the last one led back to, of a version that came since', [1, 2], [undefined, 'publish 3'], 1],
    ['a version that was named, not to those that it took back', [1, 2, 3], [1, 'publish 4'], 1],
  ] as const)('a rollback without a version leads to %s', (_name, published, then, version) => {
    const state = given(
      ...published.map((each) => publish(each)),
      ...then.map((what, n) =>
        what === undefined || typeof what === 'number'
          ? rollBack(what, `then ${n}`)
          : publish(Number(what.split(' ')[1])),
      ),
    );
    const [event] = when(state, rollBack());
    expect(event).toMatchObject({ type: 'policy-rolled-back', policy: policy(version) });
  });

  it('takes the live text once more, whatever was published since: somebody else vouches for it', () => {
    const state = given(publish(1), publish(2), rollBack());
    const [event] = when(state, publish(1, 'by another'));
    expect(event).toMatchObject({ type: 'policy-published', policy: policy(1) });
    const after = given(publish(1), publish(2), rollBack(), publish(1, 'by another'));
    expect(after.scopes.get(scope)).toMatchObject({
      live: policy(1),
      published: state.scopes.get(scope)?.published,
    });
    expect(when(after, publish(2, 'taken back'))).toMatchObject([{ policy: policy(2) }]);
  });

  it.each([
    ['an older version', given(publish(3)), publish(2), /older than version 3/],
    [
      'the same version with another text',
      given(publish(3)),
      publish(3, 'again', 'other'),
      /already published with another digest/,
    ],
    ['a rollback of nothing', given(), rollBack(), /nothing was ever published/],
    ['a rollback below the first', given(publish(1)), rollBack(), /no earlier version/],
    ['a rollback to a version that never was', given(publish(1)), rollBack(7), /no version 7 .*published: 1/],
    [
      'a reseed of nothing',
      given(),
      { kind: 'reseed', commandId: 's', scope, actor: 'ana' } as const,
      /nothing was ever published/,
    ],
    [
      'what the border refused',
      given(),
      { kind: 'refused', commandId: 's', scope, actor: 'eve', reason: 'not signed' } as const,
      /not signed/,
    ],
  ])('refuses %s, and changes nothing', (_name, state, command, reason) => {
    const [event, ...more] = when(state, command);
    expect(more).toEqual([]);
    expect(event).toMatchObject({ type: 'command-refused', reason: expect.stringMatching(reason) });
    if (event !== undefined) expect(evolve(state, event).scopes).toEqual(state.scopes);
  });

  it('a command sent twice acts once', () => {
    const state = given(publish(1));
    expect(when(state, publish(1))).toEqual([]);
  });

  it('a term never falls', () => {
    const led = evolve(evolve(INITIAL_CONTROLLER_STATE, { type: 'leadership-taken', term: 5 }), {
      type: 'leadership-taken',
      term: 2,
    });
    expect(led.term).toBe(5);
  });
});

describe('any sequence of commands', () => {
  const anyCommand = fc.oneof(
    fc
      .tuple(fc.integer({ min: 1, max: 6 }), fc.nat(40), fc.constantFrom('x', 'y'))
      .map(([version, id, digest]) => publish(version, `c${id}`, digest + version)),
    fc
      .tuple(fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }), fc.nat(40))
      .map(([version, id]) => rollBack(version, `c${id}`)),
    fc.nat(40).map((id): ControllerCommand => ({ kind: 'reseed', commandId: `c${id}`, scope, actor: 'ana' })),
  );

  it('only raises the epoch, keeps one live version that was published, and replays to the same state', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 40 }), (commands) => {
        let state = INITIAL_CONTROLLER_STATE;
        const log: ControllerEvent[] = [];
        for (const command of commands) {
          const before = scopeState(state, scope);
          for (const event of decide(state, command)) {
            log.push(event);
            state = evolve(state, event);
          }
          const after = scopeState(state, scope);
          expect(after.epoch).toBeGreaterThanOrEqual(before.epoch);
          if (after.live?.digest !== before.live?.digest) expect(after.epoch).toBeGreaterThan(before.epoch);
          if (after.live !== undefined) expect(after.published).toContainEqual(after.live);
        }
        expect(log.reduce(evolve, INITIAL_CONTROLLER_STATE)).toEqual(state);
      }),
    );
  });
});

describe('a long log', () => {
  it('of 100 000 commands is folded in a time that grows with its length alone', () => {
    let state = given(publish(1), publish(2));
    for (let n = 0; n < 100_000; n += 1) {
      const [event] = decide(state, rollBack(1 + (n % 2), `r${n}`));
      if (event !== undefined) state = evolve(state, event);
    }
    expect(state.decided.size).toBe(100_002);
    expect(scopeState(state, scope).epoch).toBe(100_002);
    expect(decide(state, rollBack(1, 'r0'))).toEqual([]);
  });

  it('leaves every state before as it was', () => {
    const before = given(publish(1));
    const [left] = decide(before, publish(2, 'left'));
    const [right] = decide(before, publish(3, 'right'));
    const [one, other] = [left, right].map((event) => (event === undefined ? before : evolve(before, event)));
    expect([before, one, other].map((state) => [...(state?.decided ?? [])].map(([id]) => id))).toEqual([
      ['p1'],
      ['p1', 'left'],
      ['p1', 'right'],
    ]);
  });
});
