import { listVersions } from '../control/published-policy.ts';
import { listNames } from '../errors.ts';
import { nextStage, startOf } from './conclude.ts';
import type { Observation } from './observation.ts';
import { missingOf, verdictOf } from './readiness.ts';
import type { HoldReason, RolloutHappening } from './rollout-event.ts';
import { type RolloutState, type ScopeState, stageOf } from './rollout-state.ts';
import type { RolloutTerms } from './rollout-terms.ts';

/** What a person asks of the rollout of a scope. `atMs` is the controller's log time. */
export type RolloutCommand =
  | {
      readonly kind: 'start';
      readonly version: number;
      readonly terms: RolloutTerms;
      readonly atMs: number;
    }
  | {
      readonly kind: 'promote';
      /** Over all stages that are left, or to the next one. */
      readonly to: 'live' | 'next';
      /** The person read why the rollout is on hold, and goes on all the same. */
      readonly overHold: boolean;
      /** A second person signed, or nobody has to sign. */
      readonly coSigned: boolean;
      readonly atMs: number;
    }
  | { readonly kind: 'hold'; readonly reason: string; readonly atMs: number }
  | { readonly kind: 'abort'; readonly reason: string; readonly atMs: number };

export type RolloutRequest = RolloutCommand | { readonly kind: 'look'; readonly observation: Observation };

/** A refusal says why, and what to do. */
export type RolloutDecision =
  | { readonly happening: RolloutHappening }
  | { readonly refused: string }
  | 'nothing';

/** What the request means as things are; its consequences are what `conclude` makes of the state after it. */
export function decideRollout(name: string, scope: ScopeState, request: RolloutRequest): RolloutDecision {
  switch (request.kind) {
    case 'start':
      return decideStart(name, scope, request);
    case 'promote':
      return decidePromote(name, scope, request);
    case 'hold':
      return decideHold(name, scope, request);
    case 'abort':
      return decideAbort(name, scope, request);
    case 'look': {
      const { observation } = request;
      const isNew = scope.rollout !== undefined && observation.atMs > scope.rollout.lastLookMs;
      return isNew ? { happening: { type: 'rollout-looked', observation } } : 'nothing';
    }
    default:
      return request satisfies never;
  }
}

type Asked<K extends RolloutRequest['kind']> = Extract<RolloutRequest, { kind: K }>;

function decideStart(name: string, scope: ScopeState, request: Asked<'start'>): RolloutDecision {
  const { version, terms, atMs } = request;
  const { live, rollout, published } = scope;
  const unknown = terms.waivedLeaves.filter((leaf) => !terms.leaves.includes(leaf));
  if (unknown.length > 0) {
    return refused(
      `version ${version} has no leaf ${listNames(unknown)} to waive; its leaves: ${listNames(terms.leaves)}`,
    );
  }
  if (rollout !== undefined) return decideStartAgain(rollout, request);
  const candidate = published.find((policy) => policy.version === version);
  if (candidate === undefined) {
    return refused(
      published.length === 0
        ? `nothing was ever published in ${name}`
        : `version ${version} of ${name} is not published; published: ${listVersions(published)}`,
    );
  }
  if (live === undefined) return refused(`nothing is live in ${name} that version ${version} could follow`);
  if (live.version === version) return refused(`version ${version} of ${name} is live`);
  return { happening: startOf(scope, candidate, terms, atMs) };
}

/** Of the version that runs: ends a hold, and waives more leaves. */
function decideStartAgain(
  { candidate, hold }: RolloutState,
  { version, terms, atMs }: Asked<'start'>,
): RolloutDecision {
  if (candidate.version !== version) {
    return refused(
      `version ${candidate.version} is being rolled out; ABORT it, or wait until it is live, and START version ${version} then`,
    );
  }
  if (hold === undefined) return refused(`version ${version} is being rolled out, and is not on hold`);
  return { happening: { type: 'rollout-resumed', waivedLeaves: terms.waivedLeaves, atMs } };
}

function decidePromote(name: string, scope: ScopeState, request: Asked<'promote'>): RolloutDecision {
  const { rollout } = scope;
  if (rollout === undefined) return refused(nothingRuns(name));
  const verdict = verdictOf(rollout);
  if (verdict?.kind === 'roll-back') {
    return refused(`the canary does harm: ${verdict.reason}; ABORT the rollout, and START one that does not`);
  }
  const holds = rollout.hold?.reasons.map(({ text }) => text) ?? [];
  if (holds.length > 0 && !request.overHold) {
    return refused(
      `the rollout is on hold: ${holds.join('; ')}. To go on all the same, add {"overHold": true} to the body (millrace policy rollout promote --over-hold)`,
    );
  }
  const next = nextStage(rollout);
  const to = request.to === 'live' ? 'live' : next;
  const overridden = [...holds, ...missingOf(rollout), ...(to === next ? [] : skippedStages(rollout))];
  if (to === 'live' && overridden.length > 0 && !request.coSigned) {
    return refused(
      `to go live against the rules needs the signature of a second person; against it: ${overridden.join('; ')}. ${SEND_ANEW}`,
    );
  }
  const { atMs } = request;
  return { happening: { type: 'rollout-advanced', to, overridden, atMs, epoch: scope.epoch + 1 } };
}

/** Whoever has the refused command at hand would sign that. */
const SEND_ANEW =
  'A signature that is added to this command later counts for nothing: make it anew, and have both people sign it before it is sent (promote --out, millrace policy sign)';

function skippedStages({ terms, stage }: RolloutState): string[] {
  const skipped = terms.stages.slice(stage + 1).map(({ percent }) => `${percent} %`);
  return [`the stages ${skipped.join(', ')} are skipped`];
}

/** Holds of people that are remembered: each is told in all that follows, and whoever may hold may do so again and again. */
const HOLDS_MAX = 16;

function decideHold(name: string, scope: ScopeState, { reason, atMs }: Asked<'hold'>): RolloutDecision {
  const { rollout } = scope;
  if (rollout === undefined) return refused(nothingRuns(name));
  const added: HoldReason = { code: 'person', text: reason };
  const before = rollout.hold?.reasons ?? [];
  const reasons = [
    ...before.filter(({ code }) => code === 'person').slice(1 - HOLDS_MAX),
    added,
    ...before.filter(({ code }) => code !== 'person'),
  ];
  return { happening: { type: 'rollout-held', reasons, atMs } };
}

function decideAbort(name: string, scope: ScopeState, { reason, atMs }: Asked<'abort'>): RolloutDecision {
  if (scope.rollout === undefined) return refused(`${nothingRuns(name)}; the live version stays as it is`);
  return { happening: { type: 'rollout-aborted', reason, atMs, epoch: scope.epoch + 1 } };
}

function nothingRuns(name: string): string {
  return `no rollout runs in ${name}`;
}

function refused(reason: string): RolloutDecision {
  return { refused: reason };
}

/** One line for people: where a rollout stands and what it waits for. */
export function describeRollout(rollout: RolloutState): string {
  const { name, percent } = stageOf(rollout);
  const where = `version ${rollout.candidate.version} in ${name} at ${percent} %`;
  if (rollout.hold !== undefined)
    return `${where}, on hold: ${rollout.hold.reasons.map(({ text }) => text).join('; ')}`;
  const missing = missingOf(rollout);
  if (missing.length > 0) return `${where}: ${missing.join('; ')}`;
  return rollout.terms.autoPromote ? `${where}: passed` : `${where}: passed, waits for PROMOTE`;
}
