import type { PublishedPolicy } from '../control/published-policy.ts';
import { INITIAL_TUNING, type TuningState } from '../tuning/tuning-state.ts';
import type { StageEvidence } from './evidence.ts';
import type { MetricState } from './metric-rules.ts';
import type { Observation } from './observation.ts';
import type { HoldReason } from './rollout-event.ts';
import type { RolloutStage, RolloutTerms } from './rollout-terms.ts';
import type { ScoresByHead } from './score-observation.ts';

export interface Hold {
  readonly sinceMs: number;
  /** Never empty. */
  readonly reasons: readonly HoldReason[];
}

/** What the windows of the shadow add up to. */
export interface ShadowTotals {
  readonly requests: number;
  readonly changed: number;
  readonly changedOutsideDeclared: number;
  readonly latencyApart: number;
  readonly exceptions: number;
  readonly leaves: Readonly<Record<string, number>>;
}

/** The error budget: what the block of windows that is being gathered has so far, and what the last full one showed. */
export interface BudgetBurn {
  readonly requests: number;
  readonly bad: number;
  readonly lastShare: number;
}

/** A rollout that runs. Plain data: it survives JSON. */
export interface RolloutState {
  readonly candidate: PublishedPolicy;
  readonly terms: RolloutTerms;
  readonly salt: string;
  /** Index into the stages of the terms. */
  readonly stage: number;
  readonly stageSinceMs: number;
  /** Time of the stage that was observed with data and was not on hold: what the dwell time is measured by. */
  readonly observedMs: number;
  /** Since a request of the candidate was last seen, in observed time. */
  readonly silentMs: number;
  readonly hold: Hold | undefined;
  /** Undefined until a look has one. */
  readonly fingerprint: string | undefined;
  readonly lastLookMs: number;
  /** Of the stage as it is; undefined before its first. */
  readonly lastLook: Observation | undefined;
  readonly shadow: ShadowTotals;
  /** Undefined in shadow, where the candidate does not act. */
  readonly evidence: StageEvidence | undefined;
  /** What the heads of the models gave in the stage so far. */
  readonly scores: ScoresByHead;
  /** The queries of the policy's guardrails that were read, by name. */
  readonly metrics: Readonly<Record<string, MetricState>>;
  /** Pools as they were when the stage began. */
  readonly baseline: Observation['pools'];
  /** In how many looks one after another a pool was over its limit, by `<code>:<pool>`. */
  readonly breaches: Readonly<Record<string, number>>;
  readonly burn: BudgetBurn;
}

/** How the last rollout of a scope ended. */
export interface EndedRollout {
  readonly candidate: PublishedPolicy;
  readonly outcome: 'live' | 'rolled-back' | 'aborted';
  readonly reason: string;
  readonly atMs: number;
}

/** One policy by name: its versions, which one acts, and the one on its way. */
export interface ScopeState {
  /** Versions published, oldest first. */
  readonly published: readonly PublishedPolicy[];
  /** Versions that were live at some time, the latest last: those a rollback may go to. */
  readonly wentLive: readonly number[];
  /** Of those the ones that were not taken back, the live one last: the way that rollbacks without a number go. */
  readonly wayBack: readonly number[];
  readonly live: PublishedPolicy | undefined;
  readonly epoch: number;
  readonly rollout: RolloutState | undefined;
  readonly ended: EndedRollout | undefined;
  readonly tuning: TuningState;
  /** A version that was published to be rolled out by itself, until that has begun. */
  readonly toStart:
    | { readonly policy: PublishedPolicy; readonly terms: RolloutTerms; readonly atMs: number }
    | undefined;
}

export const NO_SCOPE: ScopeState = {
  published: [],
  wentLive: [],
  wayBack: [],
  live: undefined,
  epoch: 0,
  rollout: undefined,
  ended: undefined,
  tuning: INITIAL_TUNING,
  toStart: undefined,
};

export const NO_SHADOW: ShadowTotals = {
  requests: 0,
  changed: 0,
  changedOutsideDeclared: 0,
  latencyApart: 0,
  exceptions: 0,
  leaves: {},
};

export const NO_BURN: BudgetBurn = { requests: 0, bad: 0, lastShare: 0 };

export function goneLive(scope: ScopeState, policy: PublishedPolicy, epoch: number): ScopeState {
  const { version } = policy;
  const withIt = (versions: readonly number[]): number[] => [
    ...versions.filter((each) => each !== version),
    version,
  ];
  const { wentLive, wayBack } = scope;
  return { ...scope, wentLive: withIt(wentLive), wayBack: withIt(wayBack), live: policy, epoch };
}

/** The live version is taken back, with whatever it had followed since `policy` was live. */
export function goneBack(scope: ScopeState, policy: PublishedPolicy, epoch: number): ScopeState {
  const { wayBack } = scope;
  const place = wayBack.indexOf(policy.version);
  const kept = wayBack.slice(0, place < 0 ? -1 : place);
  return goneLive({ ...scope, wayBack: kept }, policy, epoch);
}

/** Where a rollback without a number goes. */
export function previousOf({ published, wayBack }: ScopeState): PublishedPolicy | undefined {
  const previous = wayBack.at(-2);
  return published.find(({ version }) => version === previous);
}

/** What routers must do, but for the leader's term and its beat. */
export interface PointerContent {
  readonly epoch: number;
  readonly stable: PublishedPolicy;
  readonly canary:
    | {
        readonly policy: PublishedPolicy;
        readonly mode: 'shadow' | 'canary';
        readonly percent: number;
        readonly salt: string;
        readonly unit: RolloutTerms['unit'];
        readonly leaseMs: number;
      }
    | undefined;
}

/** What the pointer of the scope must say; undefined while nothing is live. */
export function pointerOf(scope: ScopeState): PointerContent | undefined {
  const { live, epoch, rollout } = scope;
  if (live === undefined) return undefined;
  if (rollout === undefined) return { epoch, stable: live, canary: undefined };
  const { name, percent } = stageOf(rollout);
  const { unit, leaseMs } = rollout.terms;
  const mode = name === 'shadow' ? 'shadow' : 'canary';
  return {
    epoch,
    stable: live,
    canary: { policy: rollout.candidate, mode, percent, salt: rollout.salt, unit, leaseMs },
  };
}

/** @throws RangeError for a state whose stage is none of its terms: no event makes one */
export function stageOf(rollout: RolloutState): RolloutStage {
  const stage = rollout.terms.stages[rollout.stage];
  if (stage === undefined) throw new RangeError(`a rollout has no stage ${rollout.stage}`);
  return stage;
}
