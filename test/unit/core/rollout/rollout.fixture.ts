import type { ControllerCommand, ControllerInput } from '../../../../src/core/control/controller-command.ts';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import {
  type ControllerState,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../../../src/core/control/controller-state.ts';
import type {
  ArmObservation,
  Observation,
  ShadowObservation,
} from '../../../../src/core/rollout/observation.ts';
import type { RolloutState, ScopeState } from '../../../../src/core/rollout/rollout-state.ts';
import { DEFAULT_LIMITS, type RolloutTerms } from '../../../../src/core/rollout/rollout-terms.ts';
import type { HeadScores, ScoreGroup } from '../../../../src/core/rollout/score-observation.ts';

export const SCOPE = 'policy/feed';
/** When the rollout of most tests begins. */
export const START_MS = 1_000_000;
export const LOOK_MS = 10_000;

export const policy = (version: number) => ({ digest: `sha256:${version}`, name: 'feed', version });

export const TERMS: RolloutTerms = {
  stages: [
    { name: 'shadow', percent: 0, dwellMs: 30_000 },
    { name: 'canary', percent: 5, dwellMs: 30_000 },
    { name: 'ramp', percent: 25, dwellMs: 30_000 },
    { name: 'ramp', percent: 50, dwellMs: 30_000 },
  ],
  unit: 'bucketKey',
  leaseMs: 60_000,
  leaves: ['sparse', 'rest'],
  waivedLeaves: [],
  expect: undefined,
  limits: DEFAULT_LIMITS,
  queries: [],
  autoPromote: false,
  autoRollback: true,
};

let commands = 0;
const sent = () => {
  commands += 1;
  return { commandId: `c${commands}`, scope: SCOPE, actor: 'ana' };
};

type Publish = Extract<ControllerCommand, { kind: 'publish-policy' }>;

export const publish = (version: number, mode: Publish['mode'] = 'staged'): Publish => ({
  kind: 'publish-policy',
  ...sent(),
  policy: policy(version),
  mode,
  start: undefined,
});

export const start = (
  version: number,
  terms: Partial<RolloutTerms> = {},
  atMs = START_MS,
): ControllerCommand => ({
  kind: 'start',
  ...sent(),
  version,
  terms: { ...TERMS, ...terms },
  atMs,
});

type Promote = Extract<ControllerCommand, { kind: 'promote' }>;

export const promote = (fields: Partial<Promote> = {}): ControllerCommand => ({
  kind: 'promote',
  ...sent(),
  to: 'next',
  overHold: false,
  coSigned: false,
  atMs: START_MS,
  ...fields,
});

export const hold = (reason = 'lunch', atMs = START_MS): ControllerCommand => ({
  kind: 'hold',
  ...sent(),
  reason,
  atMs,
});

export const abort = (reason = 'enough', atMs = START_MS): ControllerCommand => ({
  kind: 'abort',
  ...sent(),
  reason,
  atMs,
});

/** A child of the live policy, by a constant that a person moved. */
export const tuneTo = (version: number, atMs = START_MS): ControllerCommand => ({
  kind: 'tune',
  ...sent(),
  name: 'floor',
  value: 1,
  child: { policy: policy(version), text: '' },
  atMs,
});

export const rollBack = (toVersion?: number, atMs = START_MS): ControllerCommand => ({
  kind: 'roll-back',
  ...sent(),
  toVersion,
  atMs,
});

/** An arm whose requests take as long as the control's did, and fail never. */
export function arm(requests: number, fields: Partial<ArmObservation> = {}): ArmObservation {
  const over = [0.5, 0.05, 0.01].map((share) => Math.round(requests * share));
  return {
    requests,
    errors: 0,
    deadLettered: 0,
    deadlineMissed: 0,
    over: [over[0] ?? 0, over[1] ?? 0, over[2] ?? 0],
    ...fields,
  };
}

export const NO_REQUESTS = arm(0);

export const shadow = (fields: Partial<ShadowObservation> = {}): ShadowObservation => ({
  requests: 5_000,
  changed: 600,
  changedOutsideDeclared: 0,
  latencyApart: 0,
  exceptions: 0,
  costUsP99: 20,
  leaves: { sparse: 600, rest: 4_400 },
  projectedUtilisation: { 'gpu-1': 0.5 },
  ...fields,
});

const BINS = 10;
const GROUPS = 8;
/** Edges of score bins; what they stand for plays no part. */
const EDGES = Array.from({ length: BINS - 1 }, (_, index) => 850 + index);

/** Scores of one arm, evenly over bins and groups of keys; `lean` moves so much of each bin's share into the next one. Their deviation is 0.1. */
export function scoresOfArm(requests: number, { mean = 0.5, lean = 0 } = {}): ScoreGroup[] {
  return Array.from({ length: GROUPS }, (_, group) => {
    const size = Math.floor((requests + group) / GROUPS);
    const bins = Array.from({ length: BINS }, (_, bin) => {
      const share = 1 + (bin === 0 ? -lean : bin === BINS - 1 ? lean : 0);
      return Math.floor((size * share + ((bin + 3 * group) % BINS)) / BINS);
    });
    const count = bins.reduce((sum, each) => sum + each, 0);
    return { sum: count * mean, sumOfSquares: count * (mean ** 2 + 0.01), bins };
  });
}

export function headScores(
  stable: number,
  candidate: number,
  candidateAs: Parameters<typeof scoresOfArm>[1] = {},
): HeadScores {
  return { edges: EDGES, stable: scoresOfArm(stable), candidate: scoresOfArm(candidate, candidateAs) };
}

/** Its arms score alike, unless `fields` says otherwise. */
export const observation = (atMs: number, fields: Partial<Observation> = {}): Observation => ({
  atMs,
  windowMs: LOOK_MS,
  stable: arm(100_000),
  canary: NO_REQUESTS,
  stableLatencyMs: [10, 20, 40],
  shadow: undefined,
  pools: { 'gpu-1': { utilisation: 0.5, queueMsP99: 8 } },
  fingerprint: 'build-1',
  refusals: [],
  modelsNotReady: [],
  metrics: {},
  scores:
    fields.canary === undefined
      ? {}
      : { 'ranker/ctr': headScores(fields.stable?.requests ?? 100_000, fields.canary.requests) },
  ...fields,
});

export const look = (seen: Observation): ControllerInput => ({
  kind: 'look',
  scope: SCOPE,
  observation: seen,
});

/** A state, the log that it is the fold of, and the time of its last look. */
export interface Told {
  state: ControllerState;
  log: readonly ControllerEvent[];
}

export const NOTHING: Told = { state: INITIAL_CONTROLLER_STATE, log: [] };

export function following(told: Told, ...inputs: readonly ControllerInput[]): Told {
  let { state, log } = told;
  for (const input of inputs) {
    const events = decide(state, input);
    state = events.reduce(evolve, state);
    log = [...log, ...events];
  }
  return { state, log };
}

export const given = (...inputs: readonly ControllerInput[]): Told => following(NOTHING, ...inputs);

/** What the input makes of it: the last event says. */
export function when(told: Told, input: ControllerInput): readonly ControllerEvent[] {
  return decide(told.state, input);
}

export const scopeOf = ({ state }: Told): ScopeState => scopeState(state, SCOPE);

export function rolloutOf(told: Told): RolloutState {
  const { rollout } = scopeOf(told);
  if (rollout === undefined) throw new Error('no rollout runs');
  return rollout;
}

/** Version 1 is live, version 2 in shadow. */
export const inShadow = (terms: Partial<RolloutTerms> = {}): Told =>
  given(publish(1), publish(2), start(2, terms));

/** The looks of a stage in which nothing is wrong: one every 10 s, with the stage's share of 100 000 requests. */
export function healthy(told: Told, looks: number, change: Partial<Observation> = {}): Told {
  let now = told;
  for (let i = 0; i < looks; i += 1) {
    if (scopeOf(now).rollout === undefined) return now;
    now = following(now, look({ ...healthyLook(now), ...change }));
  }
  return now;
}

/** The next look of a stage in which nothing is wrong. */
export function healthyLook(told: Told): Observation {
  const rollout = rolloutOf(told);
  const atMs = rollout.lastLookMs + LOOK_MS;
  const percent = rollout.terms.stages[rollout.stage]?.percent ?? 0;
  return percent === 0
    ? observation(atMs, { shadow: shadow() })
    : observation(atMs, { canary: arm(1_000 * percent), stable: arm(1_000 * (100 - percent)) });
}

/** Version 2 in its canary, or in a later stage (1, 2, 3), that has just begun. */
export function inStage(stage: number, terms: Partial<RolloutTerms> = {}): Told {
  let told = inShadow(terms);
  while (rolloutOf(told).stage < stage) {
    const { stage: before, observedMs, lastLookMs } = rolloutOf(told);
    told = healthy(told, 1);
    if (rolloutOf(told).stage === before && observedMs >= 30_000)
      told = following(told, promote({ atMs: lastLookMs + LOOK_MS }));
  }
  return told;
}
