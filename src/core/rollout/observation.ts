import type { MetricReading } from './metric-reading.ts';
import type { ScoresByHead } from './score-observation.ts';

/** One arm in one window: terminal outcomes of the requests that are analysed (the 50 heaviest keys are left out). */
export interface ArmObservation {
  readonly requests: number;
  readonly errors: number;
  readonly deadLettered: number;
  readonly deadlineMissed: number;
  /** How many took longer than the stage's frozen τ for p50, p95 and p99; zeros while τ is not frozen yet. */
  readonly over: readonly [number, number, number];
}

/** What both policies would have done with the same requests in one window, while only the stable one acted. */
export interface ShadowObservation {
  readonly requests: number;
  /** Requests that get another target from the candidate. */
  readonly changed: number;
  /** Changed ones that end in a leaf which the candidate's `expect` does not name. */
  readonly changedOutsideDeclared: number;
  /** Requests whose predicted latency is apart by more than 5 %, outside the declared diff. */
  readonly latencyApart: number;
  readonly exceptions: number;
  /** 99th percentile of what the candidate's decision costs. */
  readonly costUsP99: number;
  /** Requests per leaf of the candidate; a leaf that none reached may be missing. */
  readonly leaves: Readonly<Record<string, number>>;
  /** Utilisation of each pool if the candidate decided everything, 0 … */
  readonly projectedUtilisation: Readonly<Record<string, number>>;
}

/** What the controller saw of a rollout in its last window. It goes into the log: every decision can be derived from it again. */
export interface Observation {
  /** End of the window on the controller's monotone log time, ms since the epoch as recorded. */
  readonly atMs: number;
  readonly windowMs: number;
  readonly stable: ArmObservation;
  readonly canary: ArmObservation;
  /** p50, p95 and p99 of the stable arm, to freeze τ; undefined where nothing was measured. */
  readonly stableLatencyMs: readonly [number, number, number] | undefined;
  /** Undefined where no router reported a shadow decision. */
  readonly shadow: ShadowObservation | undefined;
  readonly pools: Readonly<Record<string, { readonly utilisation: number; readonly queueMsP99: number }>>;
  /** What the heads of the models gave in both arms, of the requests that are analysed; a head that is not known well enough yet is missing. */
  readonly scores: ScoresByHead;
  /** The queries of the policy's guardrails, by name; one that was not read in the window is missing. */
  readonly metrics: Readonly<Record<string, MetricReading>>;
  /** Worker builds, model versions, and the set of pools that the policy names: any change restarts the stage. */
  readonly fingerprint: string;
  /** NACKs of routers. */
  readonly refusals: readonly string[];
  /** Why model versions that the candidate names cannot serve, by which worker. */
  readonly modelsNotReady: readonly string[];
  /** What of the window did not fit into the log, and why; undefined where all did. */
  readonly leftOut?: string | undefined;
}
