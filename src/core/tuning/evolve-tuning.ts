import { own } from '../own.ts';
import { isStillSlow, recover, slowShare, suspect } from './domain-evidence.ts';
import { reconcile } from './reconcile.ts';
import { learn } from './reference.ts';
import { failureOf, gapOf, meanSlowdown, requestsOf } from './trial.ts';
import type { TuningEvent, TuningStepped } from './tuning-event.ts';
import type { Effect, TuningObservation } from './tuning-observation.ts';
import {
  type ConstantState,
  constantOf,
  type DomainEvidence,
  isFrozen,
  type Trial,
  type TuningState,
} from './tuning-state.ts';
import { doubledPeriods, type TuningTerms } from './tuning-terms.ts';

/** A pause longer than this breaks what was sustained. */
const GAP_PERIODS = 2.5;

export function evolveTuning(state: TuningState, event: TuningEvent): TuningState {
  switch (event.type) {
    case 'tuning-looked':
      return looked(state, event.observation, event.terms);
    case 'tuning-stepped':
      return stepped(state, event);
    case 'tuning-backed-off': {
      const constant = constantOf(state, event.name);
      const blockedUntil = state.period + event.periods;
      const failed = { ...constant, trial: undefined, failures: constant.failures + 1, blockedUntil };
      return withConstant(state, event.name, failed);
    }
    default:
      return event satisfies never;
  }
}

/** Nothing is tuned while two policies share the traffic. */
export function isPaused({ rollout }: TuningObservation): boolean {
  return rollout === 'canary' || rollout === 'ramp';
}

/** A look that is not newer than the last one is none. */
function looked(known: TuningState, observation: TuningObservation, terms: TuningTerms): TuningState {
  const { last } = known;
  if (last !== undefined && observation.atMs <= last.atMs) return known;
  const state: TuningState = {
    ...reconcile(known, observation),
    period: known.period + 1,
    terms,
    last: observation,
  };
  const sinceMs = observation.atMs - (last?.atMs ?? observation.atMs);
  if (isPaused(observation) || sinceMs > GAP_PERIODS * terms.periodMs) return forget(state);
  const names = new Set([...Object.keys(state.constants), ...observation.effects.map(({ name }) => name)]);
  const constants = Object.fromEntries(
    [...names].map((name) => [name, watch(state, name, observation, terms)]),
  );
  return withReferences({ ...state, constants }, observation, terms);
}

/** What was gathered of this stretch; where the constants stand remains. */
function forget(state: TuningState): TuningState {
  const constants = Object.entries(state.constants).map(([name, constant]): [string, ConstantState] => [
    name,
    { ...constant, suspicions: {}, recovery: undefined, trial: undefined },
  ]);
  return { ...state, constants: Object.fromEntries(constants) };
}

function watch(
  state: TuningState,
  name: string,
  observation: TuningObservation,
  terms: TuningTerms,
): ConstantState {
  const constant = constantOf(state, name);
  const effects = observation.effects.filter(
    (effect) => effect.name === name && effect.blocked === undefined,
  );
  const suspicions = Object.fromEntries(
    effects.flatMap((effect) => suspicionsOf(state, constant, effect, observation, terms)),
  );
  const top = constant.trail.at(-1);
  const isQuiet =
    Object.keys(suspicions).length === 0 &&
    (top === undefined || !isStillSlow(top, observation.domains, terms));
  const isCalm =
    constant.trail.length === 0 &&
    state.period - (constant.lastStep?.period ?? 0) > 2 * terms.backOffPeriodsMax;
  const failure = constant.trial && failureOf(constant.trial, observation.domains, state.references);
  return {
    ...constant,
    suspicions,
    recovery: recoveryOf(state, constant, observation, terms),
    trial: failure === undefined || constant.trial === undefined ? undefined : { ...constant.trial, failure },
    failures: isCalm || (constant.trial !== undefined && failure === undefined) ? 0 : constant.failures,
    turns: isCalm ? 0 : constant.turns,
    quietPeriods: isQuiet ? constant.quietPeriods + 1 : 0,
  };
}

function suspicionsOf(
  { references }: TuningState,
  { suspicions }: ConstantState,
  { direction, losing, gaining }: Effect,
  { domains }: TuningObservation,
  terms: TuningTerms,
): [string, DomainEvidence][] {
  const isKnown = (domain: string): boolean => {
    const reference = own(references, domain);
    return reference !== undefined && isFrozen(reference, terms);
  };
  const others = gaining.map(({ domain }) => domain).filter(isKnown);
  const isSlow = (domain: string): boolean => gapOf(domain, others, domains, references) >= terms.slowdownMin;
  return losing
    .filter(({ domain, share }) => share >= terms.effectMin && isKnown(domain) && isSlow(domain))
    .flatMap(({ domain }) => {
      const key = `${direction} ${domain}`;
      const evidence = suspect(own(suspicions, key), { domain, others }, domains, terms);
      return evidence === undefined ? [] : [[key, evidence] as [string, DomainEvidence]];
    });
}

function recoveryOf(
  { references }: TuningState,
  { trail, recovery }: ConstantState,
  { domains }: TuningObservation,
  terms: TuningTerms,
): DomainEvidence | undefined {
  const top = trail.at(-1);
  if (top === undefined) return undefined;
  const others = top.gaining.filter((name) => own(references, name) !== undefined);
  return recover(recovery, { ...top, others }, domains, terms);
}

/** What is usual is learned in good times only; a domain that was not seen before, whenever it comes. */
function withReferences(state: TuningState, { domains }: TuningObservation, terms: TuningTerms): TuningState {
  const isAmiss = Object.values(state.constants).some(
    ({ trail, suspicions, trial }) =>
      trail.length > 0 || trial !== undefined || Object.keys(suspicions).length > 0,
  );
  const references = { ...state.references };
  for (const [name, observed] of Object.entries(domains)) {
    const known = own(references, name);
    if (isAmiss && known !== undefined && isFrozen(known, terms)) continue;
    const learned = learn(known, observed, terms);
    if (learned !== undefined) references[name] = learned;
  }
  return { ...state, references };
}

function stepped(state: TuningState, event: TuningStepped): TuningState {
  const { name, direction, to, version } = event;
  const before = constantOf(state, name);
  const { period, terms } = state;
  const isHomeward = isTowardsHome(before, direction);
  const wentBack = before.lastStep !== undefined && !before.lastStep.isAway;
  const turns = !isHomeward && wentBack ? before.turns + 1 : before.turns;
  const trial = event.kind === 'away' ? trialOf(state, event) : undefined;
  const constant: ConstantState = {
    ...before,
    trail: isHomeward ? before.trail.slice(0, -1) : [...before.trail, trailStepOf(state, before, event)],
    recovery: isHomeward ? before.recovery : undefined,
    trial,
    lastStep: { period, direction, isAway: !isHomeward },
    turns,
    turnUntil: period + doubledPeriods(terms.turnPeriods, turns, terms),
    quietPeriods: 0,
  };
  return {
    ...withConstant(state, name, constant),
    steppedPeriod: period,
    expected: { version, name, value: to, before },
  };
}

/** Whether a step that way undoes the last one of the trail. */
export function isTowardsHome({ trail }: ConstantState, direction: Effect['direction']): boolean {
  const top = trail.at(-1);
  return top !== undefined && top.direction !== direction;
}

function trailStepOf(
  { last }: TuningState,
  { suspicions }: ConstantState,
  { name, direction, domain, from }: TuningStepped,
): ConstantState['trail'][number] {
  return {
    from,
    direction,
    domain,
    gaining: effectOf(last, name, direction)?.gaining.map((gain) => gain.domain) ?? [],
    metrics: own(suspicions, `${direction} ${domain}`)?.metrics ?? [],
    slowShares: {
      queue: slowShare(own(last?.domains, domain), 'queue'),
      kernel: slowShare(own(last?.domains, domain), 'kernel'),
      endToEnd: slowShare(own(last?.domains, domain), 'endToEnd'),
    },
    utilisation: own(last?.domains, domain)?.utilisation ?? 0,
  };
}

function trialOf(
  { period, last, references }: TuningState,
  { name, direction, domain }: TuningStepped,
): Trial {
  const effect = effectOf(last, name, direction);
  const domains = last?.domains ?? {};
  const gaining = effect?.gaining.map((gain) => gain.domain) ?? [];
  return {
    period,
    domain,
    gaining,
    share: effect?.losing.find((loss) => loss.domain === domain)?.share ?? 0,
    before: {
      domainRequests: requestsOf([domain], domains),
      gainingRequests: requestsOf(gaining, domains),
      gainingSlowdown: meanSlowdown(gaining, domains, references),
    },
    failure: undefined,
  };
}

export function effectOf(
  observation: TuningObservation | undefined,
  name: string,
  direction: Effect['direction'],
): Effect | undefined {
  return observation?.effects.find((effect) => effect.name === name && effect.direction === direction);
}

function withConstant(state: TuningState, name: string, constant: ConstantState): TuningState {
  return { ...state, constants: { ...state.constants, [name]: constant } };
}
