const SPEED_MIN = 1e-4;
const SPEED_MAX = 1e4;
/** What was done lately counts as much as this much busy time; before any of it, the expectation does. */
const MEMORY_MS = 500;

/**
 * How fast a device works off what was predicted for it: predicted work per busy time, 1 where the predictions hold. It begins with what
 * the device's own profile expects, and follows the last half second or so of computing.
 */
export class Speed {
  #predictedMs: number;
  #busyMs = MEMORY_MS;

  constructor(expected: number) {
    this.#predictedMs = MEMORY_MS * clamp(expected);
  }

  observe(predictedMs: number, busyMs: number): void {
    const kept = MEMORY_MS / (MEMORY_MS + Math.max(0, busyMs));
    this.#predictedMs = kept * (this.#predictedMs + predictedMs);
    this.#busyMs = kept * (this.#busyMs + Math.max(0, busyMs));
  }

  value(): number {
    return clamp(this.#predictedMs / this.#busyMs);
  }
}

function clamp(speed: number): number {
  return Number.isNaN(speed) ? 1 : Math.min(SPEED_MAX, Math.max(SPEED_MIN, speed));
}
