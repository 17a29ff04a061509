import {
  count,
  dictionary,
  either,
  fields,
  flag,
  list,
  number,
  oneOf,
  optional,
  type Shape,
  text,
} from '../control/json-shape.ts';
import { STEP_KINDS, type TuningEvent } from './tuning-event.ts';
import { type DomainObservation, ROLLOUT_PHASES, type TuningObservation } from './tuning-observation.ts';
import type { TuningTerms } from './tuning-terms.ts';

const any = number(-Number.MAX_VALUE);
const directionShape = oneOf(['up', 'down']);
const summary = fields({ count, p50Ms: number(0), p90Ms: number(0), p99Ms: number(0), over: count });
const shares = list(fields({ domain: text, share: number(0, 1) }));

const domain: Shape<DomainObservation> = fields({
  pool: text,
  memory: text,
  requests: count,
  utilisation: number(0),
  simulated: optional(flag, false),
  latency: fields({ queue: summary, kernel: summary, endToEnd: summary }),
});

/** An observation as it may count: whoever makes one, or reads one from the log, has it pass through here. */
export const tuningObservationShape: Shape<TuningObservation> = fields({
  atMs: number(0),
  periodMs: number(0),
  version: count,
  values: dictionary(any),
  nextVersion: count,
  rollout: oneOf(ROLLOUT_PHASES),
  domains: dictionary(domain),
  effects: list(
    fields({
      name: text,
      direction: directionShape,
      to: any,
      losing: shares,
      gaining: shares,
      blocked: optional(text, undefined),
    }),
  ),
});

export const tuningTermsShape: Shape<TuningTerms> = fields({
  periodMs: number(1),
  quantile: number(0.5, 0.999),
  referencePeriods: number(1),
  requestsMin: number(1),
  witnessesMax: fields({ queue: number(1), kernel: number(1), endToEnd: number(1) }),
  recoveryWitnessesMax: number(1),
  degradedRatio: number(1),
  slowdownMin: number(1),
  recoveredRatio: number(1),
  threshold: number(1),
  sustainedPeriods: number(1),
  effectMin: number(0, 1),
  effectMax: number(0, 1),
  utilisationMax: number(0),
  returnLoadMax: number(0),
  turnPeriods: number(0),
  backOffPeriods: number(0),
  backOffPeriodsMax: number(0),
  probePeriods: number(1),
});

const atMs = number(0);

const looked: Shape<TuningEvent> = fields({
  type: oneOf(['tuning-looked']),
  observation: tuningObservationShape,
  terms: tuningTermsShape,
});
const stepped: Shape<TuningEvent> = fields({
  type: oneOf(['tuning-stepped']),
  name: text,
  kind: oneOf(STEP_KINDS),
  direction: directionShape,
  from: any,
  to: any,
  domain: text,
  version: count,
  reason: text,
  atMs,
});
const backedOff: Shape<TuningEvent> = fields({
  type: oneOf(['tuning-backed-off']),
  name: text,
  periods: number(0),
  reason: text,
  atMs,
});

/** An event of the tuning as the log of control events keeps it. */
export const tuningEventShape: Shape<TuningEvent> = either(looked, either(stepped, backedOff));
