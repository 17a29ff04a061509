/** Of the SLO: the queueing delay that credits are steered to. */
const TARGET = 0.4;
/** Of the target: what has queued for longer is dropped. */
const DROP = 2;
const A = 0.001;
const B = 0.02;
const FALL_MAX = 0.5;

/**
 * Breakwater's credits: how many requests its clients may have at the server. Cho et al., "Overload Control for µs-scale RPCs with Breakwater" (OSDI 2020): once a round
 * trip, below the target delay credits grow by max(a × clients, 1), above it they shrink by b × (d − target) / target, at most to a half; a 0.1 %, b 2 %, target 0.4 × SLO,
 * dropped above twice the target.
 */
export class Breakwater {
  readonly #targetMs: number;
  readonly #clients: number;
  #credits: number;

  constructor(sloMs: number, clients: number) {
    this.#targetMs = TARGET * sloMs;
    this.#clients = clients;
    this.#credits = clients;
  }

  get credits(): number {
    return this.#credits;
  }

  get dropAboveMs(): number {
    return DROP * this.#targetMs;
  }

  /** Once a round trip. @param delayMs how long the oldest request has queued */
  update(delayMs: number): void {
    if (delayMs < this.#targetMs) {
      this.#credits += Math.max(A * this.#clients, 1);
      return;
    }
    const fall = 1 - (B * (delayMs - this.#targetMs)) / this.#targetMs;
    this.#credits = Math.max(1, this.#credits * Math.max(fall, FALL_MAX));
  }
}
