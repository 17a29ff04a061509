export interface RetryBudgetSettings {
  /** Retries and hedges per first attempt. */
  share: number;
  /** How many more may follow at once. */
  burst: number;
}

/**
 * One budget for all second attempts, retries and hedges alike: over any stretch of time they are at most `share` × first attempts + `burst`, so
 * that they cannot keep an overload alive by themselves. A token bucket filled by requests (as Finagle's RetryBudget).
 */
export class RetryBudget {
  readonly #settings: RetryBudgetSettings;
  #tokens: number;

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings;
    this.#tokens = settings.burst;
  }

  firstAttempt(): void {
    const { share, burst } = this.#settings;
    this.#tokens = Math.min(burst, this.#tokens + share);
  }

  /** Whether one more attempt may go out; it counts as gone then. */
  take(): boolean {
    // Tenths do not sum to a whole in binary; without this the tenth request would fill no token.
    if (this.#tokens < 1 - 1e-9) return false;
    this.#tokens = Math.max(0, this.#tokens - 1);
    return true;
  }
}
