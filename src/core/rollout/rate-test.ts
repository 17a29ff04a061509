import { logMeanExp } from './sequential-test.ts';

/**
 * Mixture e-process against "events are at least `limit` of the requests", for events so rare that a comparison with the control
 * would never end. Immutable; its state is plain JSON.
 */
export interface RateTest {
  /** Events per request, > 0. */
  readonly limit: number;
  readonly events: number;
  readonly requests: number;
}

/** The alternatives: rates as shares of the limit. */
const SHARES = [0.01, 0.1, 0.25, 0.5, 0.75];

export function startRateTest(limit: number): RateTest {
  return { limit, events: 0, requests: 0 };
}

export function addRequests(test: RateTest, requests: number, events: number): RateTest {
  return { ...test, events: test.events + events, requests: test.requests + requests };
}

/**
 * log E of mean_k r_k^S · e^((1 − r_k)·limit·N), for S events in N requests. Its expectation is at most 1 for a rate p ≥ limit, at
 * every N: a request multiplies it by 1 − p·(1 − r) on average, and 1 − x ≤ e^−x.
 */
export function logEOfRate({ limit, events, requests }: RateTest): number {
  return logMeanExp(SHARES.map((share) => events * Math.log(share) + (1 - share) * limit * requests));
}
