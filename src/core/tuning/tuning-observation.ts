import { own } from '../own.ts';

/** What is read off each memory domain of a pool. `endToEnd` is from append to publication. */
export const METRICS = ['queue', 'kernel', 'endToEnd'] as const;
export type Metric = (typeof METRICS)[number];

/** Summary of one latency in one period. */
export interface LatencySummary {
  readonly count: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  /** How many took longer than the domain's frozen limit; 0 while there is none. */
  readonly over: number;
}

export interface DomainObservation {
  readonly pool: string;
  readonly memory: string;
  /** Requests that ended here. */
  readonly requests: number;
  /** Of the pool, 0 … 1. */
  readonly utilisation: number;
  /** Its service times are those of a device that is not there. */
  readonly simulated: boolean;
  readonly latency: Readonly<Record<Metric, LatencySummary>>;
}

export type Direction = 'up' | 'down';

/** What one step of a constant would do to the traffic as it is now. */
export interface Effect {
  readonly name: string;
  readonly direction: Direction;
  /** The constant's value after the step. */
  readonly to: number;
  /** Domains, and which share of its own requests each would lose. */
  readonly losing: readonly DomainShare[];
  /** Domains, and which share of all requests each would gain at most. */
  readonly gaining: readonly DomainShare[];
  /** Why the step cannot be taken, such as a golden test that would fail. */
  readonly blocked: string | undefined;
}

export interface DomainShare {
  /** `<pool>/<memory>`. */
  readonly domain: string;
  /** 0 … 1. */
  readonly share: number;
}

/** How far a rollout of the same policy is; from canary on nothing is tuned. */
export const ROLLOUT_PHASES = ['none', 'shadow', 'canary', 'ramp'] as const;
export type RolloutPhase = (typeof ROLLOUT_PHASES)[number];

/** What the controller saw of a policy in one period. It goes into the log: every step can be derived from it again. */
export interface TuningObservation {
  /** End of the period, the controller's log time, ms. */
  readonly atMs: number;
  readonly periodMs: number;
  /** Version of the live policy, and the values of its tunable constants. */
  readonly version: number;
  readonly values: Readonly<Record<string, number>>;
  /** The version that a child would get: above all that were published. */
  readonly nextVersion: number;
  readonly rollout: RolloutPhase;
  /** By `<pool>/<memory>`; of requests that the live version decided. */
  readonly domains: Readonly<Record<string, DomainObservation>>;
  readonly effects: readonly Effect[];
}

/** As people read it. */
export function shownDomain(name: string, { domains }: Pick<TuningObservation, 'domains'>): string {
  return own(domains, name)?.simulated === true ? `${name} (simulated)` : name;
}

export function domainOf(pool: string, memory: string): string {
  return `${pool}/${memory}`;
}
