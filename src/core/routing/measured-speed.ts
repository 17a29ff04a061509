const DECAY = 0.97;
/** What differs less from the declared speed is noise of the prediction. */
const NOMINAL_FROM = 0.8;
const NOMINAL_TO = 1.25;
/** The declaration counts as so many completions, until there are measured ones. */
const DECLARED_COUNT = 5;

/**
 * How fast a worker works off what was predicted, from its completions: Σ predicted / Σ busy time, where each completion lets the older ones count
 * 3 % less. Close to the speed that the worker declares it is that speed.
 */
export class MeasuredSpeed {
  #declared: number;
  #predictedMs = 0;
  #busyMs = 0;
  #count = 0;

  /** @param declared work per ms */
  constructor(declared: number) {
    this.#declared = declared;
  }

  observe(predictedMs: number, busyMs: number): void {
    this.#predictedMs = DECAY * this.#predictedMs + predictedMs;
    this.#busyMs = DECAY * this.#busyMs + busyMs;
    this.#count = DECAY * this.#count + 1;
  }

  value(): number {
    if (this.#count < DECLARED_COUNT || !(this.#busyMs > 0)) return this.#declared;
    const measured = this.#predictedMs / this.#busyMs;
    const ratio = measured / this.#declared;
    return ratio >= NOMINAL_FROM && ratio <= NOMINAL_TO ? this.#declared : measured;
  }
}
