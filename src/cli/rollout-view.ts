import { own } from '../core/own.ts';
import type { MetricGuardrail } from '../core/policy/document.ts';
import { nextStage } from '../core/rollout/conclude.ts';
import { describeEvidence, type EvidenceLine } from '../core/rollout/evidence.ts';
import type { MetricReading } from '../core/rollout/metric-reading.ts';
import { holdReasons, missingOf, verdictOf } from '../core/rollout/readiness.ts';
import { type RolloutState, type ScopeState, stageOf } from '../core/rollout/rollout-state.ts';
import { judgeHeads } from '../core/rollout/score-rules.ts';
import { HARM, SAFE } from '../core/rollout/sequential-test.ts';

/** A rollout as `rollout status` shows it. Times are those of the log, so that a look from elsewhere tells the same. */
export interface RolloutView {
  candidate: string;
  digest: string;
  stage: string;
  /** Of all stages, from 1. */
  stageNumber: number;
  stages: number;
  percent: number;
  since: string;
  /** Of the stage, with data and not on hold. */
  observedMs: number;
  dwellMs: number;
  lastLook: string | null;
  hold: { since: string; reasons: string[]; rollsBackAt: string } | null;
  /** The canary's realised share of the analysed requests in the last window. */
  exposure: number | null;
  requests: { stable: number; canary: number; shadow: number };
  evidence: readonly EvidenceLine[];
  thresholds: { rollBackMeanE: number; promoteE: number };
  /** Of the heads that both arms have; PSI and the distance of the means in standard deviations, each with its noise. */
  scores: readonly HeadView[];
  /** The queries of the policy's guardrails, with what was read of them last; null before that. */
  guardrails: readonly (MetricGuardrail & { reading: MetricReading | null; readAt: string | null })[];
  verdict: string | null;
  /** What the stage lacks to pass; empty where it passed. */
  missing: string[];
  /** What speaks against going on as things are. */
  against: string[];
  next: { to: string; by: 'itself' | 'a person'; earliest: string | null };
  rollsBack: string;
}

export interface HeadView {
  head: string;
  canary: number;
  control: number;
  canaryMean: number;
  controlMean: number;
  psi: number;
  psiNoise: number;
  /** Above this, and beyond the noise, it is a hold; null where it is no guardrail. */
  psiMax: number | null;
  /** A tenth says that something moved, which is no reason to stop. */
  moved: boolean;
  meanShift: number;
  meanShiftError: number;
  meanShiftMax: number | null;
}

/** Siddiqi, Credit Risk Scorecards, 2006: from here on a population is worth a look. */
const PSI_MOVED = 0.1;

/** @returns undefined where nothing is on its way */
export function rolloutView(scope: ScopeState): RolloutView | undefined {
  const { rollout } = scope;
  if (rollout === undefined) return undefined;
  const { candidate, terms, lastLook, evidence } = rollout;
  const { name, percent, dwellMs } = stageOf(rollout);
  const verdict = verdictOf(rollout);
  return {
    candidate: `${candidate.name}@${candidate.version}`,
    digest: candidate.digest,
    stage: name,
    stageNumber: rollout.stage + 1,
    stages: terms.stages.length,
    percent,
    since: isoTime(rollout.stageSinceMs),
    observedMs: rollout.observedMs,
    dwellMs,
    lastLook: lastLook === undefined ? null : isoTime(lastLook.atMs),
    hold: holdView(rollout),
    exposure: exposureOf(rollout),
    requests: {
      stable: evidence?.sampleRatio.stable ?? 0,
      canary: evidence?.sampleRatio.canary ?? 0,
      shadow: rollout.shadow.requests,
    },
    evidence: evidence === undefined ? [] : describeEvidence(evidence),
    thresholds: { rollBackMeanE: HARM.threshold, promoteE: SAFE.threshold },
    scores: headViews(rollout),
    guardrails: terms.queries.map((query) => guardrailView(query, rollout)),
    verdict: verdict === undefined ? null : verdict.kind,
    missing: missingOf(rollout),
    against: holdReasons(rollout).map(({ text }) => text),
    next: nextView(rollout),
    rollsBack: rollBackText(rollout),
  };
}

function holdView({ hold, terms }: RolloutState): RolloutView['hold'] {
  if (hold === undefined) return null;
  return {
    since: isoTime(hold.sinceMs),
    reasons: hold.reasons.map(({ text }) => text),
    rollsBackAt: isoTime(hold.sinceMs + terms.limits.holdMsMax),
  };
}

function guardrailView(query: MetricGuardrail, { metrics }: RolloutState): RolloutView['guardrails'][number] {
  const state = own(metrics, query.name);
  return {
    ...query,
    reading: state?.reading ?? null,
    readAt: state === undefined ? null : isoTime(state.readAtMs),
  };
}

function headViews(rollout: RolloutState): HeadView[] {
  const { scorePsiMax, scoreMeanShiftMax } = rollout.terms.limits;
  return judgeHeads(rollout).map((head) => ({
    head: head.head,
    canary: head.candidateCount,
    control: head.stableCount,
    canaryMean: head.candidateMean,
    controlMean: head.stableMean,
    psi: head.psi,
    psiNoise: head.psiNoise,
    psiMax: scorePsiMax ?? null,
    moved: head.psi - head.psiNoise > PSI_MOVED,
    meanShift: head.meanShift,
    meanShiftError: head.meanShiftError,
    meanShiftMax: scoreMeanShiftMax ?? null,
  }));
}

function exposureOf({ lastLook }: RolloutState): number | null {
  if (lastLook === undefined) return null;
  const { stable, canary } = lastLook;
  const all = stable.requests + canary.requests;
  return all === 0 ? null : canary.requests / all;
}

/** The dwell time alone says when at the earliest; on hold it stands still, so nothing does. */
function nextView(rollout: RolloutState): RolloutView['next'] {
  const { terms, hold, lastLookMs, observedMs } = rollout;
  const to = nextStage(rollout);
  const stage = to === 'live' ? undefined : terms.stages[to];
  const leftMs = Math.max(0, stageOf(rollout).dwellMs - observedMs);
  return {
    to: stage === undefined ? 'live' : `${stage.name} ${stage.percent} %`,
    by: terms.autoPromote ? 'itself' : 'a person',
    earliest: hold === undefined ? isoTime(lastLookMs + leftMs) : null,
  };
}

function rollBackText({ terms, hold }: RolloutState): string {
  const harm = `a mean E of ${HARM.threshold} over the metrics that the canary does harm`;
  const held = hold === undefined ? 'a hold' : 'this hold';
  const lasting = `${held} of more than ${Math.round(terms.limits.holdMsMax / 60_000)} min`;
  if (!terms.autoRollback) return `${lasting} (harm holds, and does not roll back by itself)`;
  return [`${harm}, at once`, ...terms.queries.flatMap(breachText), lasting].join('; ');
}

function breachText({ name, breach, forMs }: MetricGuardrail): string[] {
  if (breach !== 'roll-back') return [];
  return [`the guardrail ${name} out of its bounds${forMs === 0 ? '' : ` for ${forMs / 1_000} s`}`];
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
