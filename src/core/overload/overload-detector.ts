/** As shares of the SLA. With a low gap between them the state flips with every burst; entering at .2 cost 8 points of value. */
const ENTER = 0.3;
const LEAVE = 0.22;

/** Overloaded from a wait above 0.3 × SLA on, until it is below 0.22 × SLA. */
export class OverloadDetector {
  readonly #slaMs: number;
  #isOverloaded = false;

  constructor(slaMs: number) {
    this.#slaMs = slaMs;
  }

  get isOverloaded(): boolean {
    return this.#isOverloaded;
  }

  /** @param waitMs how long all that waits would take the servers */
  observe(waitMs: number): boolean {
    const limit = (this.#isOverloaded ? LEAVE : ENTER) * this.#slaMs;
    this.#isOverloaded = this.#isOverloaded ? waitMs >= limit : waitMs > limit;
    return this.#isOverloaded;
  }
}
