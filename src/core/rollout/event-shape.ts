import {
  count,
  either,
  fields,
  flag,
  list,
  MISFIT,
  number,
  oneOf,
  optional,
  type Shape,
  text,
} from '../control/json-shape.ts';
import { policyShape } from '../control/policy-shape.ts';
import { BREACH_ACTIONS, type MetricGuardrail, ROLLOUT_UNITS } from '../policy/document.ts';
import { observationShape } from './observation-shape.ts';
import { HOLD_CODES, type RolloutCause, type RolloutEvent } from './rollout-event.ts';
import { DEFAULT_LIMITS, type RolloutLimits, type RolloutStage, type RolloutTerms } from './rollout-terms.ts';

const share: Shape<readonly [number, number]> = (value) => {
  const bounds = list(number(0, 1))(value);
  if (bounds === MISFIT) return MISFIT;
  const [low, high] = bounds;
  return bounds.length === 2 && low !== undefined && high !== undefined ? [low, high] : MISFIT;
};

const limits: Shape<RolloutLimits> = fields({
  shadowRequestsMin: count,
  // Rollouts of before had it fixed.
  toleratedRate: optional(number(Number.MIN_VALUE, 1 - Number.EPSILON), DEFAULT_LIMITS.toleratedRate),
  shareRequestsMin: count,
  latencyApartMin: optional(number(0), DEFAULT_LIMITS.latencyApartMin),
  latencyApartShareMax: number(0),
  costUsP99Max: number(0),
  projectedUtilisationMax: number(0),
  leafHitsMin: count,
  queueFactorMax: number(0),
  queueMsFloor: number(0),
  utilisationFactorMax: number(0),
  utilisationFloor: number(0),
  breachLooks: count,
  successObjective: number(0, 1),
  burnRateMax: number(0),
  burnRequestsMin: count,
  // Rollouts of before had no such guardrail.
  scorePsiMax: optional(number(0), undefined),
  scoreMeanShiftMax: optional(number(0), undefined),
  silenceMsMax: number(0),
  holdMsMax: number(0),
});

const stages: Shape<readonly RolloutStage[]> = (value) => {
  const read = list(
    fields({ name: oneOf(['shadow', 'canary', 'ramp']), percent: number(0, 100), dwellMs: number(0) }),
  )(value);
  return read !== MISFIT && read[0]?.name === 'shadow' ? read : MISFIT;
};

const bound = optional(number(-Number.MAX_VALUE), undefined);
const query: Shape<MetricGuardrail> = fields({
  name: text,
  query: text,
  min: bound,
  max: bound,
  forMs: number(0),
  breach: oneOf(BREACH_ACTIONS),
});

export const termsShape: Shape<RolloutTerms> = fields({
  stages,
  unit: oneOf(ROLLOUT_UNITS),
  leaseMs: number(0),
  leaves: list(text),
  waivedLeaves: list(text),
  expect: optional(
    fields({ changedShare: optional(share, undefined), leaves: optional(list(text), undefined) }),
    undefined,
  ),
  limits,
  queries: optional(list(query), []),
  autoPromote: flag,
  autoRollback: flag,
});

const atMs = number(0);
const change = { reason: text, atMs, epoch: count };

/** By type, what an event has besides its type and its cause. */
const HAPPENINGS: {
  [E in RolloutEvent as E['type']]: Shape<Omit<E, 'type' | keyof RolloutCause>>;
} = {
  'rollout-started': fields({ candidate: policyShape, terms: termsShape, salt: text, atMs, epoch: count }),
  'rollout-looked': fields({ observation: observationShape }),
  'rollout-advanced': fields({
    to: either(count, oneOf(['live'])),
    overridden: list(text),
    atMs,
    epoch: count,
  }),
  'rollout-held': fields({ reasons: list(fields({ code: oneOf(HOLD_CODES), text })), atMs }),
  'rollout-resumed': fields({ waivedLeaves: list(text), atMs }),
  'stage-restarted': fields({ fingerprint: text, atMs, epoch: count }),
  'rollout-rolled-back': fields(change),
  'rollout-aborted': fields(change),
};

const cause = fields({ commandId: text, scope: text, actor: text });
const isRolloutType = (type: unknown): type is keyof typeof HAPPENINGS =>
  typeof type === 'string' && Object.hasOwn(HAPPENINGS, type);

/** An event of a rollout as the log keeps it. */
export const rolloutEventShape: Shape<RolloutEvent> = (value) => {
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
  if (!isRolloutType(type)) return MISFIT;
  const by = cause(value);
  const happening = HAPPENINGS[type](value);
  if (by === MISFIT || happening === MISFIT) return MISFIT;
  return { type, ...by, ...happening } as RolloutEvent;
};
