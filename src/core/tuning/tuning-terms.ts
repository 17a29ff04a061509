import type { Metric } from './tuning-observation.ts';

/** What the controller tunes by. Periods are those of the controller, 3 min unless configured. */
export interface TuningTerms {
  readonly periodMs: number;
  /** A domain is judged by this quantile of its own latency in good times: how many take longer than it did. */
  readonly quantile: number;
  /** Periods after which that limit counts. */
  readonly referencePeriods: number;
  /** Fewer in a period show nothing. */
  readonly requestsMin: number;
  /**
   * Requests of one domain that count in one period, per metric. Neighbours in a queue are slow together, so that a thousand of them are not a
   * thousand witnesses; without the cap a busy minute would be proof.
   */
  readonly witnessesMax: Readonly<Record<Metric, number>>;
  /** The same for a recovery, which has the time. */
  readonly recoveryWitnessesMax: number;
  /** A domain degrades where so many times the usual share is slow … */
  readonly degradedRatio: number;
  /** … the whole way is so many times as slow against the usual as in the domains that would take its traffic … */
  readonly slowdownMin: number;
  /** … and it has recovered where less than this is. */
  readonly recoveredRatio: number;
  /** e-value from which on a change counts. Lower than a rollout's: a wrong step is small, and comes back. */
  readonly threshold: number;
  /** How many periods in a row it must last. */
  readonly sustainedPeriods: number;
  /** A step that moves less than this share of a domain's requests is not worth one. */
  readonly effectMin: number;
  /** One that takes more of them at once, or leaves it fewer than twice `requestsMin`, is too much: who is not seen cannot be seen to recover. */
  readonly effectMax: number;
  /** No step takes a pool above this utilisation. */
  readonly utilisationMax: number;
  /** A domain that was slow under load gets traffic back when its pool is then at most this part as busy as when it was too much. */
  readonly returnLoadMax: number;
  /** Periods without a step against the last one; doubles each time the constant turns. */
  readonly turnPeriods: number;
  /** Periods without any step after one that did not help; doubles each time. */
  readonly backOffPeriods: number;
  /** Neither of the two grows beyond. */
  readonly backOffPeriodsMax: number;
  /** After so many periods without a sign of the trouble one step back is tried, even where nothing shows a recovery. */
  readonly probePeriods: number;
}

export const DEFAULT_TUNING: TuningTerms = {
  periodMs: 180_000,
  quantile: 0.9,
  referencePeriods: 5,
  requestsMin: 200,
  witnessesMax: { queue: 30, kernel: 300, endToEnd: 30 },
  recoveryWitnessesMax: 300,
  degradedRatio: 2,
  slowdownMin: 1.25,
  recoveredRatio: 1.5,
  threshold: 20,
  sustainedPeriods: 2,
  effectMin: 0.01,
  effectMax: 0.5,
  utilisationMax: 0.8,
  returnLoadMax: 0.85,
  turnPeriods: 2,
  backOffPeriods: 4,
  backOffPeriodsMax: 32,
  probePeriods: 20,
};

/** Is the domain's share of slow requests more than 1.5 × that of the domains that would take its traffic? */
export const WORSE = { null: 1.5, alternatives: [2, 3, 5, 10] } as const;

/** Is it less than 1.5 ×? */
export const RECOVERED = { null: 1.5, alternatives: [0.5, 0.8, 1, 1.1, 1.2] } as const;

/** Periods that double with each time, up to the longest. */
export function doubledPeriods(periods: number, times: number, terms: TuningTerms): number {
  return Math.min(periods * 2 ** times, terms.backOffPeriodsMax);
}
