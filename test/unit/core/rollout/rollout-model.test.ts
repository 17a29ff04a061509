import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ControllerInput } from '../../../../src/core/control/controller-command.ts';
import {
  conclude,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../../../src/core/control/controller-state.ts';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import type { Observation } from '../../../../src/core/rollout/observation.ts';
import { verdictOf } from '../../../../src/core/rollout/readiness.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import { pointerOf, type RolloutState, stageOf } from '../../../../src/core/rollout/rollout-state.ts';
import { DEFAULT_LIMITS, type RolloutTerms } from '../../../../src/core/rollout/rollout-terms.ts';
import { anyEvent } from './rollout.arbitrary.ts';
import {
  abort,
  arm,
  following,
  given,
  healthyLook,
  hold,
  look,
  NO_REQUESTS,
  promote,
  publish,
  rollBack,
  SCOPE,
  scopeOf,
  shadow,
  start,
  TERMS,
  type Told,
} from './rollout.fixture.ts';

/** What anybody may see of the scope from outside. */
interface Seen {
  epoch: number;
  percent: number;
  live: number;
}

interface Real {
  told: Told;
}

const seenOf = (told: Told): Seen => {
  const { epoch, live } = scopeOf(told);
  const { canary } = pointerOf(scopeOf(told)) ?? {};
  return { epoch, percent: canary?.mode === 'canary' ? canary.percent : 0, live: live?.version ?? 0 };
};

const withoutEpoch = (told: Told) => ({ ...pointerOf(scopeOf(told)), epoch: 0 });

/** One input, whatever the state: the rules must hold for all of them. */
class Step implements fc.Command<Seen, Real> {
  readonly #what: string;
  readonly #input: (told: Told) => ControllerInput;
  readonly #times: number;

  constructor(what: string, input: (told: Told) => ControllerInput, times: number) {
    this.#what = what;
    this.#input = input;
    this.#times = times;
  }

  check(): boolean {
    return true;
  }

  run(model: Seen, real: Real): void {
    for (let i = 0; i < this.#times; i += 1) this.#once(model, real);
  }

  #once(model: Seen, real: Real): void {
    const before = real.told;
    const told = following(before, this.#input(before));
    const seen = seenOf(told);
    expect(seen.epoch).toBeGreaterThanOrEqual(model.epoch);
    if (JSON.stringify(withoutEpoch(told)) !== JSON.stringify(withoutEpoch(before)))
      expect(seen.epoch).toBeGreaterThan(model.epoch);
    if (seen.live !== model.live) expect(seen.epoch).toBeGreaterThan(model.epoch);
    checkEvents(before, told);
    expect(conclude(told.state, SCOPE)).toEqual([]);
    const { rollout } = scopeOf(told);
    expect(JSON.parse(JSON.stringify(rollout ?? null))).toEqual(rollout ?? null);
    real.told = told;
    Object.assign(model, seen);
  }

  toString(): string {
    return this.#what;
  }
}

/** The share never rises by itself but for a stage that passed; an end leaves exactly nothing of the canary. */
function checkEvents(before: Told, told: Told): void {
  let { state } = before;
  for (const event of told.log.slice(before.log.length)) {
    const was = scopeState(state, SCOPE);
    state = evolve(state, event);
    const { canary } = pointerOf(scopeState(state, SCOPE)) ?? {};
    const percentOf = (rollout: RolloutState | undefined): number =>
      rollout === undefined ? 0 : stageOf(rollout).percent;
    const rose =
      percentOf(scopeState(state, SCOPE).rollout) > percentOf(was.rollout) ||
      (event.type === 'rollout-advanced' && event.to === 'live');
    if (rose) {
      expect(event.type).toBe('rollout-advanced');
      if ('commandId' in event && event.commandId === '') expectPassed(was.rollout);
    }
    if (/^(rollout-rolled-back|rollout-aborted|policy-rolled-back)$/.test(event.type))
      expect(canary).toBeUndefined();
  }
}

function expectPassed(rollout: RolloutState | undefined): void {
  if (rollout === undefined) throw new Error('a rollout that does not run advanced');
  const { limits, autoPromote } = rollout.terms;
  expect(autoPromote).toBe(true);
  expect(rollout.hold).toBeUndefined();
  expect(rollout.observedMs).toBeGreaterThanOrEqual(stageOf(rollout).dwellMs);
  if (rollout.stage === 0) expect(rollout.shadow.requests).toBeGreaterThanOrEqual(limits.shadowRequestsMin);
  else expect(verdictOf(rollout)?.kind).toBe('promotable');
}

const terms = fc.record({
  autoPromote: fc.boolean(),
  autoRollback: fc.boolean(),
  waivedLeaves: fc.constantFrom([], ['sparse'], ['none']),
  limits: fc.constant({ ...DEFAULT_LIMITS, holdMsMax: 120_000 }),
  stages: fc.constant(TERMS.stages.map((stage) => ({ ...stage, dwellMs: 15_000 }))),
}) satisfies fc.Arbitrary<Partial<RolloutTerms>>;

/** Looks that are mostly good, so that rollouts get somewhere; each may be late, empty, harmful or of another build. */
const change: fc.Arbitrary<Partial<Observation>> = fc.oneof(
  { weight: 12, arbitrary: fc.constant({}) },
  {
    weight: 6,
    arbitrary: fc.constantFrom<Partial<Observation>>(
      { canary: arm(5_000, { errors: 300 }) },
      { stable: NO_REQUESTS, canary: NO_REQUESTS, shadow: undefined },
      { shadow: shadow({ exceptions: 1 }) },
      { shadow: shadow({ costUsP99: 500 }) },
      { refusals: ['router-1: no'] },
      { fingerprint: 'build-2' },
      { pools: { 'gpu-1': { utilisation: 1, queueMsP99: 90 } } },
      { atMs: 5 },
    ),
  },
);

const now = ({ state }: Told): number => state.lastMs;
const version = fc.integer({ min: 1, max: 4 });

const step = (what: string, input: (told: Told) => ControllerInput, times = 1): Step =>
  new Step(what, input, times);

/** The next look, or several one after another, of a stage in which nothing else is wrong. */
function lookStep(change: Partial<Observation>, looks = 1): Step {
  return step(
    `${looks} looks ${JSON.stringify(change)}`,
    (told) => {
      const { rollout } = scopeOf(told);
      const seen =
        rollout === undefined ? { ...healthyLook(IN_SHADOW), atMs: now(told) + 1 } : healthyLook(told);
      return look({ ...seen, ...change });
    },
    looks,
  );
}

const anyStep: fc.Arbitrary<Step>[] = [
  fc
    .tuple(version, fc.constantFrom('staged', 'immediate'), fc.option(terms, { nil: undefined }))
    .map(([v, mode, auto]) =>
      step(`publish ${v} ${mode}`, (told) => ({
        ...publish(v, mode),
        start: auto && { terms: { ...TERMS, ...auto }, atMs: now(told) },
      })),
    ),
  fc.tuple(version, terms).map(([v, own]) => step(`start ${v}`, (told) => start(v, own, now(told) + 1))),
  fc
    .record({ to: fc.constantFrom('live', 'next'), overHold: fc.boolean(), coSigned: fc.boolean() })
    .map((fields) =>
      step(`promote ${JSON.stringify(fields)}`, (told) => promote({ ...fields, atMs: now(told) + 1 })),
    ),
  fc.constant(step('hold', (told) => hold('lunch', now(told) + 1))),
  fc.constant(step('abort', (told) => abort('enough', now(told) + 1))),
  fc
    .option(version, { nil: undefined })
    .map((v) => step(`roll back ${v}`, (told) => rollBack(v, now(told) + 1))),
  fc.constant(step('reseed', () => ({ kind: 'reseed', commandId: '', scope: SCOPE, actor: 'ana' }))),
  ...Array<fc.Arbitrary<Step>>(6).fill(change.map((own) => lookStep(own))),
  ...Array<fc.Arbitrary<Step>>(6).fill(fc.constant(lookStep({}, 3))),
];

const IN_SHADOW = following({ state: INITIAL_CONTROLLER_STATE, log: [] }, publish(1), publish(2), start(2));

it('whatever is commanded and seen: epochs rise, shares rise only by a pass or a person, the log explains everything', () => {
  const tally = { advanced: 0, live: 0, held: 0, resumed: 0, restarted: 0, rolledBack: 0 };
  fc.assert(
    fc.property(
      fc.commands(anyStep, { maxCommands: 60, size: 'max' }),
      fc.boolean(),
      (steps, autoPromote) => {
        const told = given(publish(1), publish(2), start(2, { autoPromote }));
        const real: Real = { told };
        fc.modelRun(() => ({ model: seenOf(told), real }), steps);
        const { state, log } = real.told;
        const read = log.map((event) => readControllerEvent(JSON.stringify(event)));
        expect(read).toEqual(log);
        const again = replay(read.filter((event) => event !== undefined));
        expect(again.disagreements).toEqual([]);
        expect(again.pending).toEqual([]);
        expect(again.state).toEqual(state);
        for (const event of log) {
          if (!('commandId' in event) || event.commandId !== '') continue;
          if (event.type === 'rollout-advanced') tally[event.to === 'live' ? 'live' : 'advanced'] += 1;
          if (event.type === 'rollout-held') tally.held += 1;
          if (event.type === 'rollout-resumed') tally.resumed += 1;
          if (event.type === 'stage-restarted') tally.restarted += 1;
          if (event.type === 'rollout-rolled-back') tally.rolledBack += 1;
        }
      },
    ),
    { numRuns: 200 },
  );
  // The rules above would hold of rollouts that go nowhere, too.
  for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(0);
});

it('any log folds to a state, also one that no rules have written', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
      const inOneScope = events.map((event) => ('scope' in event ? { ...event, scope: SCOPE } : event));
      const state = inOneScope.reduce(evolve, INITIAL_CONTROLLER_STATE);
      pointerOf(scopeState(state, SCOPE));
      replay(inOneScope);
    }),
  );
});
