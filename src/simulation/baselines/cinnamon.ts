const PERIOD_S = 0.5;
const KP = 0.1;
const KI = 1.4;
/** Priorities that the threshold is taken from. */
const RECENT = 1_000;

/** What one period saw. */
export interface CinnamonPeriod {
  /** Requests that passed the threshold. */
  in: number;
  /** Requests that went on to the servers. */
  out: number;
  /** Room below the concurrency limit now. */
  freeInflight: number;
}

/**
 * Cinnamon's rejector: a PI controller of the share to reject, and the priority that it comes to.
 * Uber Engineering, "PID Controller for Cinnamon" (2023): e = (in − out − freeInflight) / out each 500 ms, Kp 0.1, Ki 1.4,
 * reject = 1 − exp(−(P + I)), the threshold from the distribution of the last priorities.
 */
export class CinnamonRejector {
  readonly #recent = new Float64Array(RECENT);
  #seen = 0;
  #integral = 0;
  #share = 0;
  #threshold = Number.POSITIVE_INFINITY;

  /** Share of requests to reject. */
  get share(): number {
    return this.#share;
  }

  /** @param priority 0 is the highest */
  admits(priority: number): boolean {
    this.#recent[this.#seen % RECENT] = priority;
    this.#seen += 1;
    return priority <= this.#threshold;
  }

  /** Every 500 ms. */
  update(period: CinnamonPeriod): void {
    const error = (period.in - period.out - period.freeInflight) / Math.max(1, period.out);
    // Below 0 it would have to be unwound before the next overload is met.
    this.#integral = Math.max(0, this.#integral + KI * error * PERIOD_S);
    this.#share = 1 - Math.exp(-Math.max(0, KP * error + this.#integral));
    this.#threshold = this.#thresholdAt(this.#share);
  }

  #thresholdAt(share: number): number {
    if (share <= 0 || this.#seen === 0) return Number.POSITIVE_INFINITY;
    const recent = this.#recent.slice(0, Math.min(RECENT, this.#seen)).sort();
    const kept = Math.floor((1 - share) * recent.length);
    return kept === 0 ? Number.NEGATIVE_INFINITY : (recent[kept - 1] ?? Number.POSITIVE_INFINITY);
  }
}

const SAMPLES_MIN = 50;
const PERCENTILE = 0.9;
const LIMIT_MIN = 1;
const LIMIT_MAX = 1_000;
/** Samples until the target is taken anew: latencies may have changed for good. */
const TARGET_SAMPLES = 200;
const CORRELATION_SAMPLES = 50;
const CORRELATION_MIN = 0.3;

/**
 * Cinnamon's auto-tuner: how many requests may be at the servers at once. A TCP Vegas on the p90 of latencies.
 * Uber Engineering, "Cinnamon Auto-Tuner: Adaptive Concurrency in the Wild" (2023): the limit follows queue = limit × (1 − target / p90), grows below 3 log₁₀
 * and shrinks above 6 log₁₀ of the limit (Vegas's α and β, as in Netflix's concurrency-limits); the target is taken anew only where more
 * at once went with more throughput, else both would drift up. How often, by how much, and the samples' sizes are not published: they are ours.
 */
export class CinnamonTuner {
  #limit: number;
  #latencies: number[] = [];
  #sinceMs = 0;
  #targetMs = Number.POSITIVE_INFINITY;
  #samples = 0;
  #pairs: Pair[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** @param latencyMs from when the request left the queue until its end */
  completed(latencyMs: number, inflight: number, nowMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length < SAMPLES_MIN) return;
    const sorted = this.#latencies.sort((a, b) => a - b);
    const p90Ms = sorted[Math.floor(PERCENTILE * sorted.length)] ?? 0;
    this.#pairs.push({ inflight, perMs: sorted.length / Math.max(1e-9, nowMs - this.#sinceMs) });
    if (this.#pairs.length > CORRELATION_SAMPLES) this.#pairs.shift();
    this.#latencies = [];
    this.#sinceMs = nowMs;
    this.#sample(p90Ms, inflight);
  }

  #sample(p90Ms: number, inflight: number): void {
    this.#samples += 1;
    if (this.#samples % TARGET_SAMPLES === 0) this.#retarget(p90Ms);
    this.#targetMs = Math.min(this.#targetMs, p90Ms);
    const unit = Math.max(1, Math.log10(this.#limit));
    const queue = this.#limit * (1 - this.#targetMs / p90Ms);
    if (queue > 6 * unit) this.#move(-unit);
    else if (queue < 3 * unit && inflight >= this.#limit / 2) this.#move(unit);
  }

  #retarget(p90Ms: number): void {
    if (correlation(this.#pairs) > CORRELATION_MIN) this.#targetMs = p90Ms;
  }

  #move(by: number): void {
    this.#limit = Math.min(LIMIT_MAX, Math.max(LIMIT_MIN, this.#limit + by));
  }
}

interface Pair {
  inflight: number;
  perMs: number;
}

/** 0 where one of them does not vary. */
function correlation(pairs: readonly Pair[]): number {
  const mean = (pick: (pair: Pair) => number): number =>
    pairs.reduce((sum, pair) => sum + pick(pair), 0) / pairs.length;
  const [x, y] = [mean((pair) => pair.inflight), mean((pair) => pair.perMs)];
  const covariance = mean(({ inflight, perMs }) => (inflight - x) * (perMs - y));
  const spread = mean((pair) => (pair.inflight - x) ** 2) * mean((pair) => (pair.perMs - y) ** 2);
  return spread > 0 ? covariance / Math.sqrt(spread) : 0;
}
