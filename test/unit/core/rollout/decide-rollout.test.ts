import { describe, expect, it } from 'vitest';
import { describeRollout } from '../../../../src/core/rollout/decide-rollout.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import { pointerOf } from '../../../../src/core/rollout/rollout-state.ts';
import {
  abort,
  arm,
  following,
  given,
  healthy,
  healthyLook,
  hold,
  inShadow,
  inStage,
  look,
  NOTHING,
  policy,
  promote,
  publish,
  rollBack,
  rolloutOf,
  START_MS,
  scopeOf,
  start,
  TERMS,
  type Told,
  tuneTo,
  when,
} from './rollout.fixture.ts';

const harmed = (terms = {}): Told => {
  const told = inStage(1, terms);
  const seen = healthyLook(told);
  return following(told, look({ ...seen, canary: arm(5_000, { errors: 200 }) }));
};

describe('publishing', () => {
  it('in stages: the first version is live at once, the next waits and changes nothing for routers', () => {
    const told = given(publish(1));
    expect(scopeOf(told)).toMatchObject({ live: policy(1), epoch: 1 });
    const then = following(told, publish(2));
    expect(scopeOf(then)).toMatchObject({ live: policy(1), epoch: 1, published: [policy(1), policy(2)] });
    expect(scopeOf(then).rollout).toBeUndefined();
  });

  it('immediately: it is live at once', () => {
    expect(scopeOf(given(publish(1), publish(2, 'immediate')))).toMatchObject({ live: policy(2), epoch: 2 });
  });

  it('while a rollout runs: the rollout goes on with its own version', () => {
    const told = inShadow();
    const [event] = when(told, publish(3));
    expect(event).toMatchObject({ type: 'policy-published', live: false });
    const then = following(told, publish(3));
    expect(scopeOf(then).rollout).toEqual(scopeOf(told).rollout);
    expect(scopeOf(then).epoch).toBe(scopeOf(told).epoch);
  });

  it('immediately while a rollout runs: refused, as it could be neither live nor wait; accepted once that has ended', () => {
    const told = inShadow();
    expect(when(told, publish(3, 'immediate'))).toMatchObject([
      {
        type: 'command-refused',
        reason: expect.stringMatching(/version 2 is being rolled out.*ABORT.*or wait/),
      },
    ]);
    const then = following(told, publish(3, 'immediate'), abort(), publish(3, 'immediate'));
    expect(scopeOf(then)).toMatchObject({ live: policy(3), published: [policy(1), policy(2), policy(3)] });
  });

  it.each([1, 2])(
    'immediately while a rollout runs: version %i, which acts in it, is vouched for anew',
    (version) => {
      const told = inShadow();
      const then = following(told, publish(version, 'immediate'));
      expect(then.log.at(-1)).toMatchObject({ type: 'policy-published', live: false });
      expect(scopeOf(then)).toEqual(scopeOf(told));
    },
  );

  it('with autoStart: its rollout begins by itself, unless one runs', () => {
    const auto = { ...publish(2), start: { terms: TERMS, atMs: START_MS } };
    const told = following(given(publish(1)), auto);
    expect(told.log.map(({ type }) => type)).toEqual([
      'policy-published',
      'policy-published',
      'rollout-started',
    ]);
    expect(rolloutOf(told)).toMatchObject({ candidate: policy(2), stage: 0, stageSinceMs: START_MS });
    const next = following(told, { ...publish(3), start: { terms: TERMS, atMs: START_MS } });
    expect(rolloutOf(next).candidate).toEqual(policy(2));
    // It waits for START from then on: an end by ABORT must not begin the next one.
    expect(scopeOf(following(next, abort())).rollout).toBeUndefined();
  });
});

describe('START', () => {
  it('begins the shadow at a higher epoch: both decide, the stable one acts', () => {
    const told = inShadow();
    expect(pointerOf(scopeOf(told))).toEqual({
      epoch: 2,
      stable: policy(1),
      canary: {
        policy: policy(2),
        mode: 'shadow',
        percent: 0,
        salt: 'sha256:2@2',
        unit: 'bucketKey',
        leaseMs: 60_000,
      },
    });
  });

  it('draws other units for every rollout', () => {
    const first = inShadow();
    const second = following(first, abort(), start(2));
    expect(rolloutOf(second).salt).not.toBe(rolloutOf(first).salt);
  });

  it.each<[what: string, told: Told, command: ReturnType<typeof start>, reason: RegExp]>([
    [
      'a version that is not published',
      given(publish(1)),
      start(7),
      /version 7 .* is not published; published: 1/,
    ],
    ['anything where nothing was published', NOTHING, start(1), /nothing was ever published/],
    ['the live version', given(publish(1)), start(1), /version 1 .* is live/],
    [
      'another version while one is under way',
      following(inShadow(), publish(3)),
      start(3),
      /version 2 is being rolled out; ABORT it, or wait/,
    ],
    ['the version that is under way', inShadow(), start(2), /not on hold/],
    [
      'a waiver of very many leaves that the policy does not have',
      inShadow(),
      start(2, { waivedLeaves: Array.from({ length: 1_000 }, (_, at) => `l${at}`) }),
      /no leaf l0, .*, l19 and 980 more to waive; its leaves: sparse, rest/,
    ],
    [
      'a waiver of a leaf that the policy does not have',
      given(publish(1), publish(2)),
      start(2, { waivedLeaves: ['spares'] }),
      /no leaf spares to waive; its leaves: sparse, rest/,
    ],
  ])('refuses %s', (_what, told, command, reason) => {
    expect(when(told, command)).toMatchObject([
      { type: 'command-refused', reason: expect.stringMatching(reason) },
    ]);
    expect(scopeOf(following(told, command))).toEqual(scopeOf(told));
  });

  it('of the version that is on hold ends the hold', () => {
    const told = following(inShadow(), hold(), start(2));
    expect(told.log.at(-1)).toMatchObject({ type: 'rollout-resumed' });
    expect(rolloutOf(told).hold).toBeUndefined();
  });
});

describe('PROMOTE', () => {
  it.each([
    ['shadow', 0, { stage: 1 }, { mode: 'canary', percent: 5 }],
    ['canary', 1, { stage: 2 }, { mode: 'canary', percent: 25 }],
    ['ramp', 2, { stage: 3 }, { mode: 'canary', percent: 50 }],
  ])('takes a %s that passed one stage on, at a higher epoch', (_name, stage, rollout, canary) => {
    const before = healthy(inStage(stage), 4);
    const told = following(before, promote());
    expect(told.log.at(-1)).toMatchObject({ type: 'rollout-advanced', to: stage + 1, overridden: [] });
    expect(rolloutOf(told)).toMatchObject({ ...rollout, observedMs: 0 });
    expect(pointerOf(scopeOf(told))).toMatchObject({ epoch: scopeOf(before).epoch + 1, canary });
  });

  it('takes the last stage live', () => {
    const told = following(healthy(inStage(3), 4), promote({ atMs: 5 }));
    expect(scopeOf(told)).toMatchObject({
      live: policy(2),
      ended: { candidate: policy(2), outcome: 'live', reason: 'every stage passed', atMs: 5 },
    });
    expect(pointerOf(scopeOf(told))).toMatchObject({ stable: policy(2), canary: undefined });
  });

  it('of a stage that did not pass is a person’s decision, and the log says what spoke against it', () => {
    expect(when(inShadow(), promote())).toMatchObject([
      {
        type: 'rollout-advanced',
        to: 1,
        overridden: [
          expect.stringMatching(/30 s of the stage's 30 s/),
          expect.stringMatching(/0 of 10000 requests/),
        ],
      },
    ]);
  });

  it('straight to live needs a second signature', () => {
    const told = inStage(1);
    expect(when(told, promote({ to: 'live' }))).toMatchObject([
      {
        type: 'command-refused',
        reason: expect.stringMatching(/second person; .*the stages 25 %, 50 % are skipped/),
      },
    ]);
    const [event] = when(told, promote({ to: 'live', coSigned: true }));
    expect(event).toMatchObject({ type: 'rollout-advanced', to: 'live' });
  });

  it('of a last stage that did not pass needs it, too', () => {
    expect(when(inStage(3), promote())).toMatchObject([
      { type: 'command-refused', reason: expect.stringMatching(/second person/) },
    ]);
  });

  it('is refused on hold, with the reasons, until they are passed over by name', () => {
    const told = following(healthy(inStage(1), 4), hold('wait for Bob'));
    expect(when(told, promote())).toMatchObject([
      {
        type: 'command-refused',
        reason: expect.stringMatching(/on hold: wait for Bob\. .*"overHold": true/),
      },
    ]);
    const [event] = when(told, promote({ overHold: true }));
    expect(event).toMatchObject({ type: 'rollout-advanced', to: 2, overridden: ['wait for Bob'] });
    expect(rolloutOf(following(told, promote({ overHold: true }))).hold).toBeUndefined();
  });

  it('is refused while the canary does harm, whoever signs', () => {
    const told = harmed({ autoRollback: false });
    expect(rolloutOf(told).hold?.reasons).toMatchObject([{ code: 'harm' }]);
    expect(when(told, promote({ to: 'live', overHold: true, coSigned: true }))).toMatchObject([
      { type: 'command-refused', reason: expect.stringMatching(/does harm: errors/) },
    ]);
  });
});

describe('HOLD', () => {
  it('stops the rollout where it is: the canary stays, and its time stands still', () => {
    const told = following(inStage(1), hold('lunch'));
    expect(pointerOf(scopeOf(told))?.canary?.percent).toBe(5);
    const then = healthy(told, 10);
    expect(rolloutOf(then)).toMatchObject({
      stage: 1,
      observedMs: 0,
      hold: { reasons: [{ text: 'lunch' }] },
    });
    expect(rolloutOf(healthy(following(then, start(2)), 2)).observedMs).toBe(20_000);
  });

  it('does not end by itself, whatever the looks show, and not when the stage restarts', () => {
    const held = following(inStage(1, { autoPromote: true }), hold('lunch'));
    const told = healthy(healthy(held, 10), 10, { fingerprint: 'build-2' });
    expect(told.log.some(({ type }) => type === 'stage-restarted')).toBe(true);
    expect(rolloutOf(told)).toMatchObject({
      stage: 1,
      hold: { reasons: [{ code: 'person', text: 'lunch' }] },
    });
  });

  it('twice keeps both reasons and the beginning', () => {
    const told = following(inStage(1), hold('lunch', 5), hold('dinner', 9));
    expect(rolloutOf(told).hold).toEqual({
      sinceMs: 5,
      reasons: [
        { code: 'person', text: 'lunch' },
        { code: 'person', text: 'dinner' },
      ],
    });
  });
});

describe('HOLD again and again', () => {
  const told = following(inStage(1), ...Array.from({ length: 40 }, (_, at) => hold(`reason ${at}`, at)));

  it('is remembered for the last 16 times, and from its beginning', () => {
    const { reasons, sinceMs } = rolloutOf(told).hold ?? {};
    expect(sinceMs).toBe(0);
    expect(reasons?.map(({ text }) => text)).toEqual(
      Array.from({ length: 16 }, (_, at) => `reason ${24 + at}`),
    );
  });

  it('is derived again from the log', () => {
    expect(replay(told.log).disagreements).toEqual([]);
  });
});

describe('ABORT and ROLL_BACK', () => {
  it.each([
    ['ABORT', abort('enough', 7), 'aborted', 'enough'],
    ['ROLL_BACK', rollBack(undefined, 7), 'rolled-back', 'version 1 stays live'],
    ['ROLL_BACK to the live version', rollBack(1, 7), 'rolled-back', 'version 1 stays live'],
  ])('%s: a higher epoch that names the stable policy alone', (_name, command, outcome, reason) => {
    const before = inStage(3);
    const told = following(before, command);
    expect(scopeOf(told)).toMatchObject({ live: policy(1), ended: { outcome, reason, atMs: 7 } });
    expect(pointerOf(scopeOf(told))).toEqual({
      epoch: scopeOf(before).epoch + 1,
      stable: policy(1),
      canary: undefined,
    });
  });

  it('ROLL_BACK to an earlier version ends the rollout as well', () => {
    const before = following(given(publish(1), publish(2, 'immediate'), publish(3)), start(3));
    const told = following(before, rollBack(1));
    expect(scopeOf(told)).toMatchObject({
      live: policy(1),
      rollout: undefined,
      ended: { outcome: 'rolled-back' },
    });
  });

  it('ROLL_BACK to a version that was never live is refused: that would pass by the stages', () => {
    expect(when(given(publish(1), publish(2)), rollBack(2))).toMatchObject([
      { type: 'command-refused', reason: expect.stringMatching(/never live.*START/) },
    ]);
    expect(when(inStage(1), rollBack(2))).toMatchObject([{ type: 'command-refused' }]);
  });

  it('ROLL_BACK without a number passes over versions that were never live', () => {
    const told = given(publish(1), publish(2), publish(3, 'immediate'));
    expect(when(told, rollBack())).toMatchObject([{ type: 'policy-rolled-back', policy: policy(1) }]);
  });

  it('ROLL_BACK without a number goes to what was live before, also where that is a child by tuning of a higher version', () => {
    const tuned = following(inShadow(), tuneTo(3));
    const promoted = promote({ to: 'live', overHold: true, coSigned: true });
    let told = following(tuned, promoted);
    const way = [scopeOf(told).live?.version];
    for (let times = 0; times < 2; times += 1) {
      told = following(told, rollBack());
      way.push(scopeOf(told).live?.version);
    }
    expect(way).toEqual([2, 3, 1]);
    expect(when(told, rollBack())).toMatchObject([{ type: 'command-refused' }]);
  });

  it('ROLL_BACK without a number comes to no version that was taken back, unless it was live again', () => {
    const three = given(publish(1), publish(2, 'immediate'), publish(3, 'immediate'));
    expect(when(following(three, rollBack(1)), rollBack())).toMatchObject([{ type: 'command-refused' }]);
    const again = following(three, rollBack(2), rollBack(1), rollBack(3), publish(4, 'immediate'));
    expect(scopeOf(following(again, rollBack())).live).toEqual(policy(3));
    expect(when(following(again, rollBack(), rollBack(1)), rollBack())).toMatchObject([
      { type: 'command-refused' },
    ]);
  });

  it.each([
    ['HOLD', hold()],
    ['PROMOTE', promote()],
    ['ABORT', abort()],
  ])('%s without a rollout is refused, and changes nothing', (_name, command) => {
    const told = given(publish(1));
    expect(when(told, command)).toMatchObject([
      { type: 'command-refused', reason: expect.stringMatching(/no rollout runs in policy\/feed/) },
    ]);
    expect(pointerOf(scopeOf(following(told, command)))).toEqual(pointerOf(scopeOf(told)));
  });
});

it.each<[told: Told, line: RegExp]>([
  [inShadow(), /^version 2 in shadow at 0 %: 30 s of the stage's 30 s .*; 0 of 10000 requests/],
  [healthy(inShadow(), 4), /^version 2 in shadow at 0 %: passed, waits for PROMOTE$/],
  [following(inStage(2), hold('lunch')), /^version 2 in ramp at 25 %, on hold: lunch$/],
])('a rollout is described in a line: %#', (told, line) => {
  expect(describeRollout(rolloutOf(told))).toMatch(line);
});
