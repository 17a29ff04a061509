import type { PolicyPointer } from '../../ports/control-store.ts';

/**
 * How long the canary of a pointer may be obeyed: until `leaseMs` after its beat or its epoch was last seen to rise, by the monotonic clock of
 * whoever looks. The first pointer that is found counts as no rise, whenever that is: its writer may be long dead, and a store restored of a backup.
 */
export class CanaryLease {
  #epoch = 0;
  #beat = 0;
  #hasFound = false;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** @param lookedAtMs when the pointer was asked for: it is at least as old as that. `undefined` where the store has none */
  saw(pointer: PolicyPointer | undefined, lookedAtMs: number): void {
    if (pointer === undefined) return;
    const isFirst = !this.#hasFound;
    this.#hasFound = true;
    const { epoch, canary } = pointer;
    const beat = canary?.beat ?? 0;
    const rises = epoch > this.#epoch || (epoch === this.#epoch && beat > this.#beat);
    if (!rises) return;
    if (canary === undefined) this.#untilMs = Number.NEGATIVE_INFINITY;
    else if (!isFirst) this.#untilMs = lookedAtMs + canary.leaseMs;
    this.#epoch = epoch;
    this.#beat = beat;
  }

  isHeld(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  /** When it ends, on the same clock; −∞ where it never began. */
  get untilMs(): number {
    return this.#untilMs;
  }
}
