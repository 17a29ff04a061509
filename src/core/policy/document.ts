import type { Condition } from './expression.ts';
import type { Position } from './problem.ts';

/** What a signal holds: numbers and flags come in the vector of signals, strings from the request's context. */
export const SIGNAL_TYPES = ['double', 'int', 'bool', 'string'] as const;
export type SignalType = (typeof SIGNAL_TYPES)[number];

export const VARIANTS = ['baseline', 'enhanced'] as const;
export type Variant = (typeof VARIANTS)[number];

/** Where a request is computed; the fleet maps the accelerator class to its pools. */
export interface Target {
  readonly accelerator: string;
  readonly kernel: string;
  readonly memory: string;
}

/** A target as a policy writes it: without a memory domain it means the accelerator's first one. */
export interface WrittenTarget {
  readonly accelerator: string;
  readonly kernel: string;
  readonly memory: string | undefined;
  /** The model variant that the branch insists on; undefined leaves the choice to the router. */
  readonly variant: Variant | undefined;
}

/** The condition of a branch. */
export interface When {
  /** As it was written. */
  readonly text: string;
  readonly condition: Condition;
  /** Names of the signals that it reads, in the order of their first mention. */
  readonly reads: readonly string[];
}

export type Branch = LeafBranch | TreeBranch;

interface BranchHead {
  readonly id: string;
  /** Undefined: the branch takes every request that gets here. */
  readonly when: When | undefined;
  /** Such as `tree[2].tree[0]`. */
  readonly path: string;
}

export interface LeafBranch extends BranchHead {
  readonly kind: 'leaf';
  readonly to: WrittenTarget;
  /** Accelerator classes to try, in this order, where the target has no capacity. */
  readonly fallback: readonly string[];
}

export interface TreeBranch extends BranchHead {
  readonly kind: 'tree';
  /** Not empty; the last one has no condition. */
  readonly tree: readonly Branch[];
}

/** A constant that the controller may move: `tune("name", default, min: …, max: …, step: …)`. */
export interface Tunable {
  readonly name: string;
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly step: TuningStep;
}

export type TuningStep = { readonly by: 'percent' | 'amount'; readonly size: number };

export type SignalValue = number | boolean | string;

/** An example that the author promises: a request with these signals ends in this leaf. */
export interface GoldenTest {
  readonly signals: ReadonlyMap<string, SignalValue>;
  readonly leaf: string;
  readonly path: string;
}

/** What the author says the policy changes against its parent. */
export interface Expectation {
  /** Lower and upper bound of the share of requests that get another target, 0 … 1. */
  readonly changedShare: readonly [number, number] | undefined;
  /** The only leaves that changed requests may end in. */
  readonly leaves: readonly string[] | undefined;
}

export const BREACH_ACTIONS = ['hold', 'roll-back'] as const;

/** A query of a store of metrics whose value must stay within bounds, inclusive, while the policy is on its way to live. At least one bound is there. */
export interface MetricGuardrail {
  readonly name: string;
  /** PromQL of an instant vector or a scalar; of several series the worst counts. */
  readonly query: string;
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** It must have been out of bounds for so long. */
  readonly forMs: number;
  readonly breach: (typeof BREACH_ACTIONS)[number];
}

/** What the author adds to the guardrails of the rollout, or changes of them; undefined leaves a limit at the controller's. */
export interface PolicyGuardrails {
  readonly scorePsiMax: number | undefined;
  readonly scoreMeanShiftMax: number | undefined;
  readonly queries: readonly MetricGuardrail[];
}

export const NO_GUARDRAILS: PolicyGuardrails = {
  scorePsiMax: undefined,
  scoreMeanShiftMax: undefined,
  queries: [],
};

export const ROLLOUT_UNITS = ['bucketKey', 'requestId'] as const;

export interface RolloutPlan {
  readonly shadowMs: number;
  readonly canary: { readonly percent: number; readonly dwellMs: number };
  /** Strictly rising, above the canary's percent and below 100. */
  readonly rampPercents: readonly number[];
  readonly rampDwellMs: number;
  /** What is held together in one arm. */
  readonly unit: (typeof ROLLOUT_UNITS)[number];
  readonly guardrails: PolicyGuardrails;
}

export const DEFAULT_ROLLOUT: RolloutPlan = {
  shadowMs: 15 * 60_000,
  canary: { percent: 5, dwellMs: 15 * 60_000 },
  rampPercents: [10, 25, 50],
  rampDwellMs: 10 * 60_000,
  unit: 'bucketKey',
  guardrails: NO_GUARDRAILS,
};

export const API_VERSION = 'millrace/v1';

/** Records carry a policy's version as an Avro int. */
export const POLICY_VERSION_MAX = 2 ** 31 - 1;

/** The versions that score a family's requests where a request pins none, by variant; a variant that is left out gets the newest of the model folder. */
export type ModelChoice = { readonly [V in Variant]: string | undefined };

/** A routing policy that was read and found well formed: every list of branches is total, and every condition has its types. */
export interface PolicyDocument {
  readonly name: string;
  readonly version: number;
  /** `sha256:<hex>` of the policy that this one was made from. */
  readonly parent: string | undefined;
  readonly signals: ReadonlyMap<string, SignalType>;
  readonly tunables: readonly Tunable[];
  /** Values in force instead of the defaults of `tunables`. */
  readonly tuned: ReadonlyMap<string, number>;
  /** By model family. */
  readonly models: ReadonlyMap<string, ModelChoice>;
  readonly expect: Expectation | undefined;
  readonly tree: readonly Branch[];
  readonly tests: readonly GoldenTest[];
  readonly rollout: RolloutPlan;
  /** Where things stand in the text, by their path, for whoever finds a problem later. */
  readonly positions: ReadonlyMap<string, Position>;
}

/** All leaves in the order of the document, which is the order of their indexes. */
export function leafBranches(tree: readonly Branch[]): LeafBranch[] {
  return tree.flatMap((branch) => (branch.kind === 'leaf' ? [branch] : leafBranches(branch.tree)));
}

/** `family@version` of every model version that the policy names, sorted. */
export function namedModels({ models }: Pick<PolicyDocument, 'models'>): string[] {
  const names = [...models].flatMap(([family, choice]) =>
    VARIANTS.flatMap((variant) => (choice[variant] === undefined ? [] : [`${family}@${choice[variant]}`])),
  );
  return [...new Set(names)].sort();
}

/** Accelerator classes of its leaves, their fallbacks included, sorted. */
export function namedAccelerators({ tree }: Pick<PolicyDocument, 'tree'>): string[] {
  const classes = leafBranches(tree).flatMap(({ to, fallback }) => [to.accelerator, ...fallback]);
  return [...new Set(classes)].sort();
}
