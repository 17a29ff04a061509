import type { PolicyPointer } from '../../ports/control-store.ts';

/**
 * How long the canary of a pointer may be obeyed: until `leaseMs` after its epoch, the term of its leader, or its beat was last seen to rise, by the
 * monotonic clock of whoever looks. The first pointer that is found counts as no rise, whenever that is: its writer may be long dead, and a store restored of a backup.
 */
export class CanaryLease {
  /** Epoch, term and beat: the first that differs counts. */
  #seen: readonly [number, number, number] = [0, 0, 0];
  #hasFound = false;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** @param lookedAtMs when the pointer was asked for: it is at least as old as that. `undefined` where the store has none */
  saw(pointer: PolicyPointer | undefined, lookedAtMs: number): void {
    if (pointer === undefined) return;
    const isFirst = !this.#hasFound;
    this.#hasFound = true;
    const { epoch, term, canary } = pointer;
    const sign = [epoch, term, canary?.beat ?? 0] as const;
    if (!isLater(sign, this.#seen)) return;
    this.#seen = sign;
    if (canary === undefined) this.#untilMs = Number.NEGATIVE_INFINITY;
    else if (!isFirst) this.#untilMs = lookedAtMs + canary.leaseMs;
  }

  isHeld(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  /** When it ends, on the same clock; −∞ where it never began. */
  get untilMs(): number {
    return this.#untilMs;
  }
}

function isLater(sign: readonly number[], seen: readonly number[]): boolean {
  const first = sign.findIndex((each, place) => each !== seen[place]);
  return first >= 0 && (sign[first] ?? 0) > (seen[first] ?? 0);
}
