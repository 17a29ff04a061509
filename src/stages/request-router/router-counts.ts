import { type ArmWindow, makeArmWindow, type OutcomeKind } from '../../contracts/records.ts';
import type { ErrorCode } from '../../core/errors.ts';
import type { Decided } from './deciding-policy.ts';

/** What a router did in one window. */
export interface RouterCounted {
  leaves: Record<string, number>;
  pools: Record<string, number>;
  errors: Record<string, number>;
  /** Requests per arm: dispatched, or ended in the router. */
  exposure: Record<string, number>;
  arms: ArmWindow[];
  /** Decisions that found no credit or no worker at once. */
  stalls: number;
}

/** What a router did since the last window was taken. */
export class RouterCounts {
  stalls = 0;
  readonly #leaves = new Map<string, number>();
  readonly #pools = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  /** Of each arm, the requests that are analysed and those that are not; in the order in which they came up. */
  #arms: ArmWindow[] = [];

  dispatched(decided: Decided, leaf: string, pool: string): void {
    increment(this.#leaves, leaf);
    increment(this.#pools, pool);
    this.#armOf(decided).requests += 1;
  }

  /** The request ended here, without a dispatch. */
  ended(decided: Decided, outcome: OutcomeKind, code: ErrorCode): void {
    increment(this.#errors, code);
    const arm = this.#armOf(decided);
    arm.requests += 1;
    arm.outcomes[outcome] = (arm.outcomes[outcome] ?? 0) + 1;
    arm.errors[code] = (arm.errors[code] ?? 0) + 1;
  }

  /** The request ended here before anybody could decide it. */
  undecided(code: ErrorCode): void {
    increment(this.#errors, code);
  }

  /** The counts so far; counting starts at 0 again. */
  take(): RouterCounted {
    const taken = {
      leaves: Object.fromEntries(this.#leaves),
      pools: Object.fromEntries(this.#pools),
      errors: Object.fromEntries(this.#errors),
      exposure: exposureOf(this.#arms),
      arms: this.#arms,
      stalls: this.stalls,
    };
    this.#leaves.clear();
    this.#pools.clear();
    this.#errors.clear();
    this.#arms = [];
    this.stalls = 0;
    return taken;
  }

  #armOf({ arm, analysed }: Decided): ArmWindow {
    for (const known of this.#arms) if (known.arm === arm && known.analysed === analysed) return known;
    const fresh = makeArmWindow({ arm, analysed });
    this.#arms.push(fresh);
    return fresh;
  }
}

function exposureOf(arms: readonly ArmWindow[]): Record<string, number> {
  const exposure: Record<string, number> = {};
  for (const { arm, requests } of arms) exposure[arm] = (exposure[arm] ?? 0) + requests;
  return exposure;
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
