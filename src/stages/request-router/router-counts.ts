/** What a router did since the last window was taken. */
export class RouterCounts {
  leaves = new Map<string, number>();
  pools = new Map<string, number>();
  errors = new Map<string, number>();
  requests = 0;
  /** Decisions that found no credit or no worker at once. */
  stalls = 0;

  dispatched(leaf: string, pool: string): void {
    this.requests += 1;
    increment(this.leaves, leaf);
    increment(this.pools, pool);
  }

  error(code: string): void {
    increment(this.errors, code);
  }

  /** The counts so far; counting starts at 0 again. */
  take(): {
    leaves: Record<string, number>;
    pools: Record<string, number>;
    errors: Record<string, number>;
    requests: number;
    stalls: number;
  } {
    const taken = {
      leaves: Object.fromEntries(this.leaves),
      pools: Object.fromEntries(this.pools),
      errors: Object.fromEntries(this.errors),
      requests: this.requests,
      stalls: this.stalls,
    };
    this.leaves.clear();
    this.pools.clear();
    this.errors.clear();
    this.requests = 0;
    this.stalls = 0;
    return taken;
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
