import fc from 'fast-check';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import type { MetricReading } from '../../../../src/core/rollout/metric-reading.ts';
import type { ArmObservation, Observation } from '../../../../src/core/rollout/observation.ts';
import { HOLD_CODES, type RolloutEvent } from '../../../../src/core/rollout/rollout-event.ts';
import { DEFAULT_LIMITS, type RolloutTerms } from '../../../../src/core/rollout/rollout-terms.ts';
import type { HeadScores } from '../../../../src/core/rollout/score-observation.ts';
import { STEP_KINDS } from '../../../../src/core/tuning/tuning-event.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import { anyModel } from '../model/model.fixture.ts';
import { observe, TOLD } from '../tuning/tuning.fixture.ts';

const text = fc.string({ maxLength: 12 });
const name = fc.string({ minLength: 1, maxLength: 8 }).filter((each) => each !== '__proto__');
const count = fc.nat(1_000_000);
/** JSON has no -0. */
const finite = fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => value + 0);
const positive = fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => value + 0);
const share = fc.double({ min: 0, max: 1, noNaN: true }).map((value) => value + 0);

export const anyArm: fc.Arbitrary<ArmObservation> = fc
  .tuple(fc.nat(50_000), fc.array(share, { minLength: 6, maxLength: 6 }))
  .map(([requests, shares]) => {
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = shares.map((each) => Math.floor(requests * each));
    return { requests, errors: a, deadLettered: b, deadlineMissed: c, over: [d, e, f] };
  });

const dictionary = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true });

const anyHead: fc.Arbitrary<HeadScores> = fc.nat(4).chain((edges) => {
  const group = fc.record({
    sum: fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((value) => value + 0),
    sumOfSquares: positive,
    bins: fc.array(fc.nat(1_000), { minLength: edges + 1, maxLength: edges + 1 }),
  });
  const groups = fc.array(group, { minLength: 3, maxLength: 3 });
  return fc.record({
    edges: fc.uniqueArray(fc.nat(1_282), { minLength: edges, maxLength: edges }),
    stable: groups,
    candidate: groups,
  });
});

const anyValue = fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => value + 0);
const anyReading: fc.Arbitrary<MetricReading> = fc.oneof(
  fc.record({ series: count, lowest: anyValue, highest: anyValue }),
  fc.record({ failed: text }),
);

export const anyObservation: fc.Arbitrary<Observation> = fc.record({
  atMs: count,
  windowMs: fc.integer({ min: 1, max: 60_000 }),
  stable: anyArm,
  canary: anyArm,
  stableLatencyMs: fc.option(fc.tuple(positive, positive, positive), { nil: undefined }),
  shadow: fc.option(
    fc.record({
      requests: count,
      changed: count,
      changedOutsideDeclared: count,
      latencyApart: count,
      exceptions: count,
      costUsP99: positive,
      leaves: dictionary(count),
      projectedUtilisation: dictionary(positive),
    }),
    { nil: undefined },
  ),
  pools: dictionary(fc.record({ utilisation: positive, queueMsP99: positive })),
  scores: dictionary(anyHead),
  metrics: dictionary(anyReading),
  fingerprint: text,
  refusals: fc.array(text, { maxLength: 3 }),
  modelsNotReady: fc.array(text, { maxLength: 2 }),
});

export const anyTerms: fc.Arbitrary<RolloutTerms> = fc.record({
  stages: fc
    .array(fc.record({ name: fc.constantFrom('canary', 'ramp'), percent: fc.nat(100), dwellMs: count }), {
      maxLength: 4,
    })
    .map((stages) => [{ name: 'shadow', percent: 0, dwellMs: 5 } as const, ...stages]),
  unit: fc.constantFrom('bucketKey', 'requestId'),
  leaseMs: count,
  leaves: fc.array(text, { maxLength: 4 }),
  waivedLeaves: fc.array(text, { maxLength: 2 }),
  expect: fc.option(
    fc.record({
      changedShare: fc.option(fc.tuple(share, share), { nil: undefined }),
      leaves: fc.option(fc.array(text, { maxLength: 2 }), { nil: undefined }),
    }),
    { nil: undefined },
  ),
  limits: fc.constant(DEFAULT_LIMITS),
  queries: fc.array(
    fc.record({
      name,
      query: text,
      min: fc.option(anyValue, { nil: undefined }),
      max: fc.option(anyValue, { nil: undefined }),
      forMs: count,
      breach: fc.constantFrom('hold', 'roll-back'),
    }),
    { maxLength: 2 },
  ),
  autoPromote: fc.boolean(),
  autoRollback: fc.boolean(),
});

const policy = fc.record({ digest: text, name: text, version: count });
const cause = { commandId: text, scope: text, actor: text };
const change = { reason: text, atMs: count, epoch: count };
const type = <const T extends string>(value: T): fc.Arbitrary<T> => fc.constant(value);

/** By type, so that none can be forgotten. */
const ROLLOUT_EVENTS: { [E in RolloutEvent as E['type']]: fc.Arbitrary<E> } = {
  'rollout-started': fc.record({
    type: type('rollout-started'),
    ...cause,
    candidate: policy,
    terms: anyTerms,
    salt: text,
    atMs: count,
    epoch: count,
  }),
  'rollout-looked': fc.record({ type: type('rollout-looked'), ...cause, observation: anyObservation }),
  'rollout-advanced': fc.record({
    type: type('rollout-advanced'),
    ...cause,
    to: fc.oneof(fc.nat(5), fc.constant('live' as const)),
    overridden: fc.array(text, { maxLength: 2 }),
    atMs: count,
    epoch: count,
  }),
  'rollout-held': fc.record({
    type: type('rollout-held'),
    ...cause,
    reasons: fc.array(fc.record({ code: fc.constantFrom(...HOLD_CODES), text }), { maxLength: 3 }),
    atMs: count,
  }),
  'rollout-resumed': fc.record({
    type: type('rollout-resumed'),
    ...cause,
    waivedLeaves: fc.array(text, { maxLength: 2 }),
    atMs: count,
  }),
  'stage-restarted': fc.record({
    type: type('stage-restarted'),
    ...cause,
    fingerprint: text,
    atMs: count,
    epoch: count,
  }),
  'rollout-rolled-back': fc.record({ type: type('rollout-rolled-back'), ...cause, ...change }),
  'rollout-aborted': fc.record({ type: type('rollout-aborted'), ...cause, ...change }),
};

type ControlEvents = Exclude<ControllerEvent, RolloutEvent>;

const CONTROL_EVENTS: { [E in ControlEvents as E['type']]: fc.Arbitrary<E> } = {
  'leadership-taken': fc.record({ type: type('leadership-taken'), term: count }),
  'policy-published': fc.record({
    type: type('policy-published'),
    ...cause,
    policy,
    live: fc.boolean(),
    start: fc.option(fc.record({ terms: anyTerms, atMs: count }), { nil: undefined }),
    epoch: count,
  }),
  'model-published': fc.record({
    type: type('model-published'),
    ...cause,
    model: anyModel,
    epoch: count,
  }),
  'policy-rolled-back': fc.record({
    type: type('policy-rolled-back'),
    ...cause,
    from: policy,
    policy,
    atMs: count,
    epoch: count,
  }),
  'store-reseeded': fc.record({ type: type('store-reseeded'), ...cause, epoch: count }),
  'command-refused': fc.record({ type: type('command-refused'), ...cause, reason: text }),
  'key-revoked': fc.record({ type: type('key-revoked'), ...cause, keyId: text }),
  'policy-tuned': fc.record({
    type: type('policy-tuned'),
    ...cause,
    policy,
    text,
    name: text,
    value: finite,
    ...change,
  }),
  'tuning-looked': fc.record({
    type: type('tuning-looked'),
    ...cause,
    observation: fc.constant(observe(TOLD, {}, DEFAULT_TUNING)),
    terms: fc.constant(DEFAULT_TUNING),
  }),
  'tuning-stepped': fc.record({
    type: type('tuning-stepped'),
    ...cause,
    name: text,
    kind: fc.constantFrom(...STEP_KINDS),
    direction: fc.constantFrom('up' as const, 'down' as const),
    from: finite,
    to: finite,
    domain: text,
    version: count,
    reason: text,
    atMs: count,
  }),
  'tuning-backed-off': fc.record({
    type: type('tuning-backed-off'),
    ...cause,
    name: text,
    periods: count,
    reason: text,
    atMs: count,
  }),
};

export const anyEvent: fc.Arbitrary<ControllerEvent> = fc.oneof(
  ...Object.values<fc.Arbitrary<ControllerEvent>>(CONTROL_EVENTS),
  ...Object.values<fc.Arbitrary<ControllerEvent>>(ROLLOUT_EVENTS),
);
