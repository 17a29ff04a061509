import { own } from '../own.ts';
import type { RatioTest } from '../rollout/sequential-test.ts';
import { type Direction, METRICS, type Metric, type TuningObservation } from './tuning-observation.ts';
import { DEFAULT_TUNING, type TuningTerms } from './tuning-terms.ts';

/** How long a latency is in good times. It is frozen while anything is amiss. */
export interface Reference {
  /** Periods that it was learned from. */
  readonly learned: number;
  readonly p50Ms: number;
  /** The limit that `over` counts by. */
  readonly limitMs: number;
}

export type References = Readonly<Record<Metric, Reference>>;

export function isFrozen(references: References, terms: TuningTerms): boolean {
  return METRICS.every((metric) => references[metric].learned >= terms.referencePeriods);
}

/** Evidence about one domain and those that would take its traffic, one test per metric. */
export interface DomainEvidence {
  /** Periods in a row. */
  readonly periods: number;
  readonly tests: Readonly<Record<Metric, RatioTest>>;
  /** Metrics that showed it in the last period. */
  readonly metrics: readonly Metric[];
}

/** One step away from home that was not undone yet. */
export interface TrailStep {
  /** The value before. */
  readonly from: number;
  readonly direction: Direction;
  /** The domain that degraded. */
  readonly domain: string;
  readonly gaining: readonly string[];
  /** What showed it. */
  readonly metrics: readonly Metric[];
  /** Of the domain's requests, how many were slow in the period before the step; 0 … 1. */
  readonly slowShares: Readonly<Record<Metric, number>>;
  /** Of the domain's pool in the period before the step; 0 … 1. */
  readonly utilisation: number;
}

/** The last step away, until the period after it shows what it did. */
export interface Trial {
  readonly period: number;
  readonly domain: string;
  readonly gaining: readonly string[];
  /** Of its own requests, what the domain was to lose. */
  readonly share: number;
  /** In the period before the step. */
  readonly before: {
    readonly domainRequests: number;
    readonly gainingRequests: number;
    readonly gainingSlowdown: number;
  };
  /** Why the step did not help; undefined while nothing says so. */
  readonly failure: string | undefined;
}

/** One tunable constant. */
export interface ConstantState {
  /** Empty at home: the value that people gave it. */
  readonly trail: readonly TrailStep[];
  /** That the domain degrades, by `<direction> <domain>`: a step that way would relieve it. */
  readonly suspicions: Readonly<Record<string, DomainEvidence>>;
  /** That the domain of the last step of the trail has recovered. */
  readonly recovery: DomainEvidence | undefined;
  readonly trial: Trial | undefined;
  readonly lastStep:
    | { readonly period: number; readonly direction: Direction; readonly isAway: boolean }
    | undefined;
  /** Steps in a row that did not help. */
  readonly failures: number;
  /** How often it went away again soon after it had come back. */
  readonly turns: number;
  /** Period before which there is no step at all. */
  readonly blockedUntil: number;
  /** Period before which there is no step against the last one. */
  readonly turnUntil: number;
  /** Periods without a sign of the trouble and without a step. */
  readonly quietPeriods: number;
}

/** The tuning of one policy. Plain data: it survives JSON. */
export interface TuningState {
  /** Looks so far. */
  readonly period: number;
  readonly last: TuningObservation | undefined;
  /** By which the last period was judged. */
  readonly terms: TuningTerms;
  /** The last period with a step; there is at most one in each. */
  readonly steppedPeriod: number;
  /** By domain and metric. */
  readonly references: Readonly<Record<string, References>>;
  readonly constants: Readonly<Record<string, ConstantState>>;
  /** A step that the next look must show; anything else in its place is a person's doing. */
  readonly expected: ExpectedStep | undefined;
}

export interface ExpectedStep {
  readonly version: number;
  readonly name: string;
  readonly value: number;
  /** The constant as it was, for a step that does not come about. */
  readonly before: ConstantState;
}

export const INITIAL_TUNING: TuningState = {
  period: 0,
  last: undefined,
  terms: DEFAULT_TUNING,
  steppedPeriod: 0,
  references: {},
  constants: {},
  expected: undefined,
};

export const AT_HOME: ConstantState = {
  trail: [],
  suspicions: {},
  recovery: undefined,
  trial: undefined,
  lastStep: undefined,
  failures: 0,
  turns: 0,
  blockedUntil: 0,
  turnUntil: 0,
  quietPeriods: 0,
};

export function constantOf(state: TuningState, name: string): ConstantState {
  return own(state.constants, name) ?? AT_HOME;
}

/** Limits that `over` of the next period is to be counted by: by domain and metric, ms. A domain that is still learned has none. */
export function limitsOf(state: TuningState): Readonly<Record<string, Readonly<Record<Metric, number>>>> {
  return Object.fromEntries(
    Object.entries(state.references)
      .filter(([, references]) => isFrozen(references, state.terms))
      .map(([domain, { queue, kernel, endToEnd }]) => [
        domain,
        { queue: queue.limitMs, kernel: kernel.limitMs, endToEnd: endToEnd.limitMs },
      ]),
  );
}
