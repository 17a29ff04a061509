import { own } from '../own.ts';
import { addObservation, startEvidence } from './evidence.ts';
import { countBreaches } from './guardrails.ts';
import { addReadings } from './metric-rules.ts';
import type { Observation, ShadowObservation } from './observation.ts';
import type { HoldReason, RolloutEvent } from './rollout-event.ts';
import {
  type BudgetBurn,
  type EndedRollout,
  goneLive,
  type Hold,
  NO_BURN,
  NO_SHADOW,
  type RolloutState,
  type ScopeState,
  type ShadowTotals,
  stageOf,
} from './rollout-state.ts';
import type { RolloutTerms } from './rollout-terms.ts';
import { addScores } from './score-observation.ts';

/** What the event makes of the scope. Total: an event of a rollout that does not run changes nothing. */
export function evolveRollout(scope: ScopeState, event: RolloutEvent): ScopeState {
  if (event.type === 'rollout-started') return started(scope, event);
  const { rollout } = scope;
  if (rollout === undefined) return scope;
  switch (event.type) {
    case 'rollout-looked':
      return { ...scope, rollout: looked(rollout, event.observation) };
    case 'rollout-advanced':
      return advanced(scope, rollout, event);
    case 'rollout-held':
      return { ...scope, rollout: { ...rollout, hold: held(rollout.hold, event) } };
    case 'rollout-resumed':
      return { ...scope, rollout: resumed(rollout, event.waivedLeaves) };
    case 'stage-restarted':
      return { ...scope, rollout: restarted(rollout, event), epoch: event.epoch };
    case 'rollout-rolled-back':
      return { ...ended(scope, rollout, 'rolled-back', event), epoch: event.epoch };
    case 'rollout-aborted':
      return { ...ended(scope, rollout, 'aborted', event), epoch: event.epoch };
    default:
      return event satisfies never;
  }
}

/** The scope without its rollout, and with what became of it. */
export function ended(
  scope: ScopeState,
  rollout: RolloutState,
  outcome: EndedRollout['outcome'],
  { reason, atMs }: { reason: string; atMs: number },
): ScopeState {
  return { ...scope, rollout: undefined, ended: { candidate: rollout.candidate, outcome, reason, atMs } };
}

function started(scope: ScopeState, event: Extract<RolloutEvent, { type: 'rollout-started' }>): ScopeState {
  const { candidate, terms, salt, atMs, epoch } = event;
  const rollout: RolloutState = {
    candidate,
    terms,
    salt,
    hold: undefined,
    fingerprint: undefined,
    lastLookMs: atMs,
    ...freshStage(terms, 0, atMs),
    baseline: {},
    metrics: {},
  };
  return { ...scope, epoch, rollout, toStart: undefined };
}

function advanced(
  scope: ScopeState,
  rollout: RolloutState,
  event: Extract<RolloutEvent, { type: 'rollout-advanced' }>,
): ScopeState {
  const { to, atMs, epoch } = event;
  const { candidate } = rollout;
  if (to === 'live') {
    const reason = event.overridden.length === 0 ? 'every stage passed' : `by ${event.actor}`;
    return goneLive(ended(scope, rollout, 'live', { reason, atMs }), candidate, epoch);
  }
  if (rollout.terms.stages[to] === undefined) return scope;
  const next: RolloutState = {
    ...rollout,
    ...freshStage(rollout.terms, to, atMs),
    hold: undefined,
    baseline: rollout.lastLook === undefined ? rollout.baseline : atWork(rollout.lastLook.pools),
  };
  return { ...scope, epoch, rollout: next };
}

/** Everything that is observed of one stage, at its start. */
function freshStage({ stages, unit, limits }: RolloutTerms, stage: number, atMs: number) {
  const percent = stages[stage]?.percent ?? 0;
  return {
    stage,
    stageSinceMs: atMs,
    observedMs: 0,
    silentMs: 0,
    lastLook: undefined,
    shadow: NO_SHADOW,
    evidence: percent > 0 ? startEvidence({ percent, unit, ...limits }) : undefined,
    scores: {},
    breaches: {},
    burn: NO_BURN,
  };
}

/** A look that is not newer than the last one is none. */
function looked(rollout: RolloutState, observation: Observation): RolloutState {
  const { atMs, pools } = observation;
  if (atMs <= rollout.lastLookMs) return rollout;
  const seen = { ...rollout, lastLook: observation, lastLookMs: atMs };
  const fingerprint = rollout.fingerprint ?? (observation.fingerprint || undefined);
  const baseline = { ...atWork(pools), ...rollout.baseline };
  const guarded = { ...seen, fingerprint, baseline };
  const watched = {
    ...guarded,
    breaches: countBreaches(guarded, pools),
    metrics: addReadings(guarded, observation.metrics, atMs),
  };
  return isOfStage(rollout, observation) ? counted(watched, rollout, observation) : watched;
}

/** An idle pool says nothing of how long its requests queue: it is measured against its first look with work. */
function atWork(pools: Observation['pools']): Observation['pools'] {
  return Object.fromEntries(
    Object.entries(pools).filter(([, { queueMsP99, utilisation }]) => queueMsP99 > 0 || utilisation > 0),
  );
}

/** What the stage was observed under is no longer what runs. An observer that does not know it (empty) changes nothing. */
export function changesFingerprint(rollout: RolloutState, { fingerprint }: Observation): boolean {
  return rollout.fingerprint !== undefined && fingerprint !== '' && fingerprint !== rollout.fingerprint;
}

/** A window that began before the stage tells of the one before. Observer and controller may be apart by a tenth of a window, or a second. */
function isOfStage({ stageSinceMs }: RolloutState, { atMs, windowMs }: Observation): boolean {
  return atMs - windowMs >= stageSinceMs - Math.min(1_000, windowMs / 10);
}

function counted(watched: RolloutState, before: RolloutState, observation: Observation): RolloutState {
  const { atMs, windowMs } = observation;
  const elapsedMs = Math.min(windowMs, atMs - before.lastLookMs);
  const hasData = candidateRequests(before, observation) > 0;
  return {
    ...watched,
    observedMs: watched.observedMs + (hasData && watched.hold === undefined ? elapsedMs : 0),
    silentMs: hasData ? 0 : watched.silentMs + elapsedMs,
    shadow: addShadow(watched.shadow, observation.shadow),
    evidence: watched.evidence === undefined ? undefined : addObservation(watched.evidence, observation),
    scores: addScores(watched.scores, observation.scores),
    burn: addBurn(watched.burn, watched.terms.limits.burnRequestsMin, observation),
  };
}

/** Requests that the candidate decided in the window: beside the stable policy in shadow, in its place afterwards. */
function candidateRequests(rollout: RolloutState, { shadow, canary }: Observation): number {
  return stageOf(rollout).name === 'shadow' ? (shadow?.requests ?? 0) : canary.requests;
}

function addShadow(totals: ShadowTotals, window: ShadowObservation | undefined): ShadowTotals {
  if (window === undefined) return totals;
  const leaves: Record<string, number> = { ...totals.leaves };
  for (const [leaf, hits] of Object.entries(window.leaves)) leaves[leaf] = (own(leaves, leaf) ?? 0) + hits;
  return {
    requests: totals.requests + window.requests,
    changed: totals.changed + window.changed,
    changedOutsideDeclared: totals.changedOutsideDeclared + window.changedOutsideDeclared,
    latencyApart: totals.latencyApart + window.latencyApart,
    exceptions: totals.exceptions + window.exceptions,
    leaves,
  };
}

/** Both arms together: a canary on shared pools harms its control as well. */
function addBurn(burn: BudgetBurn, requestsMin: number, { stable, canary }: Observation): BudgetBurn {
  const requests = burn.requests + stable.requests + canary.requests;
  const bad = [stable, canary].reduce(
    (sum, arm) => sum + arm.errors + arm.deadLettered + arm.deadlineMissed,
    burn.bad,
  );
  if (requests < requestsMin) return { ...burn, requests, bad };
  return { requests: 0, bad: 0, lastShare: requests === 0 ? 0 : bad / requests };
}

/** A hold keeps its beginning while its reasons change. */
function held(hold: Hold | undefined, event: { atMs: number; reasons: readonly HoldReason[] }): Hold {
  return { sinceMs: hold?.sinceMs ?? event.atMs, reasons: event.reasons };
}

function resumed(rollout: RolloutState, waived: readonly string[]): RolloutState {
  const waivedLeaves = [...new Set([...rollout.terms.waivedLeaves, ...waived])];
  return { ...rollout, hold: undefined, terms: { ...rollout.terms, waivedLeaves } };
}

/** The live policy is another one: what the shadow saw was of the one before. */
export function liveChanged(scope: ScopeState, atMs: number): ScopeState {
  const { rollout } = scope;
  if (rollout === undefined) return scope;
  return { ...scope, rollout: restarted(rollout, { fingerprint: rollout.fingerprint, atMs }) };
}

/** Fresh evidence. What a person held stays held; every other reason was one of what runs no more. */
function restarted(
  rollout: RolloutState,
  { fingerprint, atMs }: { fingerprint: string | undefined; atMs: number },
): RolloutState {
  const reasons = rollout.hold?.reasons.filter(({ code }) => code === 'person') ?? [];
  return {
    ...rollout,
    ...freshStage(rollout.terms, rollout.stage, atMs),
    baseline: atWork(rollout.lastLook?.pools ?? {}),
    fingerprint,
    hold: rollout.hold === undefined || reasons.length === 0 ? undefined : { ...rollout.hold, reasons },
  };
}
