import { own } from '../own.ts';
import { logEOfRecovery, logEOfSuspicion } from './domain-evidence.ts';
import { effectOf, evolveTuning, isPaused, isTowardsHome } from './evolve-tuning.ts';
import { type SlowdownMetric, slowdownOf } from './reference.ts';
import { gapOf, requestsOf } from './trial.ts';
import type { TuningEvent, TuningStepped } from './tuning-event.ts';
import { type Direction, type Effect, shownDomain, type TuningObservation } from './tuning-observation.ts';
import { type ConstantState, constantOf, type DomainEvidence, type TuningState } from './tuning-state.ts';
import { doubledPeriods, type TuningTerms } from './tuning-terms.ts';

/**
 * The feedback controller of tunable constants as decide and evolve on plain data. One look per period: the look itself, and what follows from it;
 * at most one step, so that what it does can be told from what others do. A look before the period is over gives nothing.
 */
export function decideTuning(
  state: TuningState,
  observation: TuningObservation,
  terms: TuningTerms,
): readonly TuningEvent[] {
  if (state.last !== undefined && observation.atMs < state.last.atMs + terms.periodMs) return [];
  const look: TuningEvent = { type: 'tuning-looked', observation, terms };
  return [look, ...concludeTuning(evolveTuning(state, look))];
}

/** What follows from the last look. Nothing, right after `decideTuning`; a new leader asks, since the one before may have died in between. */
export function concludeTuning(state: TuningState): readonly TuningEvent[] {
  const events: TuningEvent[] = [];
  for (const name of Object.keys(state.constants).sort()) {
    const event = backOffOf(state, name);
    if (event === undefined) continue;
    events.push(event);
    state = evolveTuning(state, event);
  }
  const step = stepOf(state);
  return step === undefined ? events : [...events, step];
}

function backOffOf({ constants, terms, last }: TuningState, name: string): TuningEvent | undefined {
  const { trial, failures } = own(constants, name) ?? {};
  if (trial?.failure === undefined || last === undefined) return undefined;
  const periods = doubledPeriods(terms.backOffPeriods, failures ?? 0, terms);
  const reason = `the last step did not help: ${trial.failure}`;
  return { type: 'tuning-backed-off', name, periods, reason, atMs: last.atMs };
}

interface Candidate {
  readonly step: TuningStepped;
  /** Trouble before recovery before curiosity, then what moves most. */
  readonly rank: readonly [number, number];
}

function stepOf(state: TuningState): TuningStepped | undefined {
  const { last, period, steppedPeriod } = state;
  if (last === undefined || steppedPeriod === period || isPaused(last)) return undefined;
  const candidates = Object.keys(last.values)
    .sort()
    .filter((name) => period >= constantOf(state, name).blockedUntil)
    .flatMap((name) => [...awaySteps(state, last, name), ...homeSteps(state, last, name)]);
  const best = candidates.sort((a, b) => b.rank[0] - a.rank[0] || b.rank[1] - a.rank[1])[0];
  return best?.step;
}

/** Steps off a domain that degrades. */
function awaySteps(state: TuningState, last: TuningObservation, name: string): Candidate[] {
  const constant = constantOf(state, name);
  return last.effects
    .filter((effect) => effect.name === name && mayTurn(state, constant, effect.direction))
    .flatMap((effect) =>
      effect.losing.flatMap(({ domain, share }) => {
        const evidence = own(constant.suspicions, `${effect.direction} ${domain}`);
        if (evidence === undefined || !isSustained(evidence, logEOfSuspicion(evidence), state.terms))
          return [];
        if (!hasRoom(effect, domain, last, state.terms) || isTooMuch(domain, share, last, state.terms))
          return [];
        if (!isWorthAnother(state, constant, effect, domain, last)) return [];
        const step = stepTo(state, last, effect, {
          kind: 'away',
          domain,
          reason: reasonOf(state, last, domain, evidence, share),
        });
        return [
          {
            step,
            rank: [
              2,
              share *
                gapOf(
                  domain,
                  effect.gaining.map((gain) => gain.domain),
                  last.domains,
                  state.references,
                ),
            ] as const,
          },
        ];
      }),
    );
}

/** Steps that undo the last one of the trail. */
function homeSteps(state: TuningState, last: TuningObservation, name: string): Candidate[] {
  const constant = constantOf(state, name);
  const top = constant.trail.at(-1);
  if (top === undefined) return [];
  const direction = top.direction === 'up' ? 'down' : 'up';
  const effect = effectOf(last, name, direction);
  if (effect === undefined || effect.blocked !== undefined || !mayTurn(state, constant, direction)) return [];
  const { domain } = top;
  const { recovery } = constant;
  const periods = recovery?.periods ?? 0;
  if (
    recovery !== undefined &&
    isSustained(recovery, logEOfRecovery(recovery), state.terms) &&
    mayReturn(top, effect, last, state.terms)
  ) {
    const reason = `${shownDomain(domain, last)} has been as fast as usual for ${periods} periods, E ${shown(logEOfRecovery(recovery))}`;
    return [{ step: stepTo(state, last, effect, { kind: 'back', domain, reason }), rank: [1, 0] }];
  }
  const probeAfter = doubledPeriods(state.terms.probePeriods, constant.turns, {
    ...state.terms,
    backOffPeriodsMax: state.terms.backOffPeriodsMax * state.terms.probePeriods,
  });
  if (constant.quietPeriods < probeAfter) return [];
  const reason = `nothing was amiss for ${constant.quietPeriods} periods`;
  return [{ step: stepTo(state, last, effect, { kind: 'probe', domain, reason }), rank: [0, 0] }];
}

/** Against the last step only when that has had its time. */
function mayTurn(
  { period }: TuningState,
  { lastStep, turnUntil }: ConstantState,
  direction: Direction,
): boolean {
  return lastStep === undefined || lastStep.direction === direction || period >= turnUntil;
}

function isSustained({ periods }: DomainEvidence, logE: number, terms: TuningTerms): boolean {
  return periods >= terms.sustainedPeriods && logE >= Math.log(terms.threshold);
}

/** After steps that did not help another one takes a wider gap each time: the last one went far enough for the gap as it was. */
function isWorthAnother(
  { references, terms }: TuningState,
  { failures }: ConstantState,
  { gaining }: Effect,
  domain: string,
  { domains }: TuningObservation,
): boolean {
  const others = gaining.map((gain) => gain.domain);
  return gapOf(domain, others, domains, references) >= terms.slowdownMin ** (1 + failures);
}

function isTooMuch(
  domain: string,
  share: number,
  { domains }: TuningObservation,
  terms: TuningTerms,
): boolean {
  return share > terms.effectMax || (1 - share) * requestsOf([domain], domains) < 2 * terms.requestsMin;
}

/** Whether the pools that gain have room for what they would get; a step within one pool asks nothing more of it. */
function hasRoom(effect: Effect, from: string, last: TuningObservation, terms: TuningTerms): boolean {
  return effect.gaining.every(({ domain, share }) => {
    const gaining = own(last.domains, domain);
    if (gaining === undefined || gaining.pool === own(last.domains, from)?.pool) return true;
    const then = utilisationWith(domain, share, last);
    return then === undefined || then <= terms.utilisationMax;
  });
}

/** Of the pool of a domain that gets this share of all requests from elsewhere; undefined while it has none to judge by. */
function utilisationWith(domain: string, share: number, { domains }: TuningObservation): number | undefined {
  const gaining = own(domains, domain);
  const ofPool = Object.values(domains).filter(({ pool }) => pool === gaining?.pool);
  const now = ofPool.reduce((sum, each) => sum + each.requests, 0);
  if (gaining === undefined || now === 0) return undefined;
  return gaining.utilisation * (1 + (share * requestsOf(Object.keys(domains), domains)) / now);
}

/**
 * A domain whose kernels were slow may have its traffic back when they no longer are. One that was slow under its load is well because it has less:
 * it gets more back only where its pool would be less busy than when it was too much, since there is less to do or more to do it with. Where its queue
 * was long it may have been either: batches grow with a queue, and take longer.
 */
function mayReturn(
  top: ConstantState['trail'][number],
  effect: Effect,
  last: TuningObservation,
  terms: TuningTerms,
): boolean {
  const from = top.gaining[0] ?? '';
  if (!hasRoom(effect, from, last, terms)) return false;
  if (top.metrics.includes('kernel') && !top.metrics.includes('queue')) return true;
  const isWithinPool = own(last.domains, from)?.pool === own(last.domains, top.domain)?.pool;
  const share = isWithinPool ? 0 : (effect.gaining.find(({ domain }) => domain === top.domain)?.share ?? 0);
  const then = utilisationWith(top.domain, share, last);
  return then === undefined || then <= terms.returnLoadMax * top.utilisation;
}

function stepTo(
  state: TuningState,
  last: TuningObservation,
  { name, direction, to }: Effect,
  rest: Pick<TuningStepped, 'kind' | 'domain' | 'reason'>,
): TuningStepped {
  const constant = constantOf(state, name);
  // The exact value before: up and down again must not drift.
  const target = isTowardsHome(constant, direction) ? (constant.trail.at(-1)?.from ?? to) : to;
  const from = own(last.values, name) ?? target;
  return {
    type: 'tuning-stepped',
    name,
    direction,
    from,
    to: target,
    ...rest,
    version: last.nextVersion,
    atMs: last.atMs,
  };
}

function reasonOf(
  { references }: TuningState,
  last: TuningObservation,
  domain: string,
  evidence: DomainEvidence,
  share: number,
): string {
  const of = (metric: SlowdownMetric): string =>
    slowdownOf(own(references, domain), own(last.domains, domain), metric).toFixed(2);
  return (
    `${shownDomain(domain, last)} takes ${of('endToEnd')} × the usual time, its kernels ${of('kernel')} ×, for ${evidence.periods} periods ` +
    `(${evidence.metrics.join(', ')}; E ${shown(logEOfSuspicion(evidence))}); moves ${(100 * share).toFixed(1)} % of its requests`
  );
}

function shown(logE: number): string {
  return logE > 9 ? `10^${(logE / Math.LN10).toFixed(0)}` : Math.exp(logE).toFixed(0);
}
