import type { Chooser, CreateChooser, Members, Seat } from '../routing/chooser.ts';

/** The publication's names and its testbed's values, but for the quantile, which it varies from 0.6 to 0.9. */
export interface PrequalSettings {
  /** Q_RIF: a probe with more requests in flight than this quantile of the recent ones is hot. */
  readonly hotQuantile: number;
  /** r_probe: probes sent per request. */
  readonly probesPerRequest: number;
  /** r_remove: probes removed per request, besides those used up. */
  readonly removedPerRequest: number;
  /** m: most probes in the pool. */
  readonly poolMax: number;
  readonly ageMaxMs: number;
  /** δ: how much faster than used up probes come in. */
  readonly delta: number;
}

export const PREQUAL: PrequalSettings = {
  hotQuantile: 2 ** -0.25,
  probesPerRequest: 3,
  removedPerRequest: 1,
  poolMax: 16,
  ageMaxMs: 1_000,
  delta: 1,
};

interface PooledProbe {
  readonly worker: number;
  inFlight: number;
  readonly latencyMs: number;
  readonly atMs: number;
  usesLeft: number;
}

/** So many answers tell the distribution of requests in flight. */
const RECENT = 128;
/** More in flight count as so many. */
const COUNTED_MAX = 1_000;
const POOL_MIN = 2;

/**
 * Prequal (Wydrowski, Kleinberg, Rumble, Archer: "Load is not what you should balance: Introducing Prequal", NSDI 2024, section 4), asynchronous:
 * each request sends probes to workers drawn without regard to speed, and is decided by the pool of answers: hot-cold lexicographic, the lowest latency of
 * the cold or, where all are hot, the fewest requests in flight. Probes are used b_reuse times; a use adds a request in flight to the probe.
 * With each request the oldest and the worst probe are removed in turns. With fewer than two probes the worker is drawn at random.
 */
export function prequal(settings: PrequalSettings = PREQUAL): CreateChooser {
  return (seat) => new Prequal(seat, settings);
}

/** b_reuse = max(1, (1 + δ) / ((1 − m/n) r_probe − r_remove)) */
export function usesOf(settings: PrequalSettings, workers: number): number {
  const { delta, poolMax, probesPerRequest, removedPerRequest } = settings;
  const rate = (1 - poolMax / workers) * probesPerRequest - removedPerRequest;
  return rate > 0 ? Math.max(1, (1 + delta) / rate) : Number.POSITIVE_INFINITY;
}

class Prequal implements Chooser {
  readonly #seat: Seat;
  readonly #settings: PrequalSettings;
  #pool: PooledProbe[] = [];
  readonly #recent: number[] = [];
  /** By requests in flight. */
  readonly #recentCounts: number[] = Array.from({ length: COUNTED_MAX + 1 }, () => 0);
  #answers = 0;
  #live: number[];
  #toProbe = 0;
  #toRemove = 0;
  #removesOldest = true;

  constructor(seat: Seat, settings: PrequalSettings) {
    this.#seat = seat;
    this.#settings = settings;
    this.#live = seat.speeds.map((_, worker) => worker);
  }

  membersChanged({ isLive }: Members): void {
    this.#live = this.#seat.speeds.flatMap((_, worker) => (isLive[worker] === true ? worker : []));
    this.#pool = this.#pool.filter(({ worker }) => isLive[worker] === true);
  }

  choose(_predictedMs: number, nowMs: number): number {
    this.#sendProbes();
    this.#pool = this.#pool.filter(({ atMs }) => nowMs - atMs <= this.#settings.ageMaxMs);
    const chosen = this.#pool.length < POOL_MIN ? undefined : this.#best();
    if (chosen !== undefined) this.#use(chosen);
    this.#remove();
    return chosen?.worker ?? this.#live[this.#seat.random.below(this.#live.length)] ?? 0;
  }

  probed(worker: number, reading: { requestsInFlight: number; latencyMs: number }, nowMs: number): void {
    this.#remember(reading.requestsInFlight);
    if (this.#pool.length >= this.#settings.poolMax) this.#drop(this.#oldest());
    this.#pool.push({
      worker,
      inFlight: reading.requestsInFlight,
      latencyMs: reading.latencyMs,
      atMs: nowMs,
      usesLeft: this.#roundedUses(),
    });
  }

  #sendProbes(): void {
    this.#toProbe += this.#settings.probesPerRequest;
    const workers = [...this.#live];
    // Drawn without replacement.
    while (this.#toProbe >= 1 && workers.length > 0) {
      this.#toProbe -= 1;
      const [worker] = workers.splice(this.#seat.random.below(workers.length), 1);
      if (worker !== undefined) this.#seat.probe(worker);
    }
  }

  /** A fraction is rounded at random, so that the mean is right. */
  #roundedUses(): number {
    const uses = usesOf(this.#settings, this.#live.length);
    if (uses === Number.POSITIVE_INFINITY) return uses;
    const whole = Math.floor(uses);
    return this.#seat.random.next() < uses - whole ? whole + 1 : whole;
  }

  #hotAbove(): number {
    const answers = Math.min(this.#answers, RECENT);
    const rank = Math.floor(this.#settings.hotQuantile * (answers - 1));
    let below = 0;
    for (const [inFlight, count] of this.#recentCounts.entries()) {
      below += count;
      if (below > rank) return inFlight;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Counts of the recent answers are kept, so that the quantile takes no sorting. */
  #remember(inFlight: number): void {
    const place = this.#answers++ % RECENT;
    const forgotten = this.#recent[place];
    if (forgotten !== undefined) this.#recentCounts[forgotten] = (this.#recentCounts[forgotten] ?? 0) - 1;
    const most = Math.min(inFlight, COUNTED_MAX);
    this.#recent[place] = most;
    this.#recentCounts[most] = (this.#recentCounts[most] ?? 0) + 1;
  }

  #best(): PooledProbe | undefined {
    const hotAbove = this.#hotAbove();
    const cold = this.#pool.filter(({ inFlight }) => inFlight <= hotAbove);
    return cold.length > 0
      ? extreme(cold, ({ latencyMs }) => latencyMs)
      : extreme(this.#pool, ({ inFlight }) => inFlight);
  }

  /** The opposite of the best: the hot one with most requests in flight or, where none is hot, the cold one of the greatest latency. */
  #worst(): PooledProbe | undefined {
    const hotAbove = this.#hotAbove();
    const hot = this.#pool.filter(({ inFlight }) => inFlight > hotAbove);
    return hot.length > 0
      ? extreme(hot, ({ inFlight }) => -inFlight)
      : extreme(this.#pool, ({ latencyMs }) => -latencyMs);
  }

  #oldest(): PooledProbe | undefined {
    return extreme(this.#pool, ({ atMs }) => atMs);
  }

  #use(probe: PooledProbe): void {
    probe.inFlight += 1;
    probe.usesLeft -= 1;
    if (probe.usesLeft < 1) this.#drop(probe);
  }

  #remove(): void {
    this.#toRemove += this.#settings.removedPerRequest;
    while (this.#toRemove >= 1) {
      this.#toRemove -= 1;
      this.#drop(this.#removesOldest ? this.#oldest() : this.#worst());
      this.#removesOldest = !this.#removesOldest;
    }
  }

  #drop(probe: PooledProbe | undefined): void {
    this.#pool = this.#pool.filter((other) => other !== probe);
  }
}

function extreme(
  probes: readonly PooledProbe[],
  measure: (probe: PooledProbe) => number,
): PooledProbe | undefined {
  let best: PooledProbe | undefined;
  for (const probe of probes) if (best === undefined || measure(probe) < measure(best)) best = probe;
  return best;
}
