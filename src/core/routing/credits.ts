import { RecentRate } from '../latency/rate.ts';
import { WindowedExtreme } from '../latency/windowed-extreme.ts';

/** Fewer than 2 starve after a loss: the one outstanding dispatch may be the lost one. */
const CREDITS_MIN = 2;
const RATE_WINDOW_MS = 500;
const LEAST_WINDOW_MS = 10_000;
/**
 * How far transport may grow over its minimum before it counts as a queue and no longer as the way. Records and acknowledgements travel in
 * batches, so under load most take several times the shortest; but a queue in the topic must not inflate its own allowance for ever.
 */
const TRANSPORT_OVER_LEAST_MAX = 4;

/**
 * How many dispatches one router may have outstanding on one slot (Little's law, measured online):
 * limit = completion rate × (transport + service) + this router's share of one batch, at least 2, at most `creditsMax`.
 *
 * Transport is the acknowledgement's round trip less the time that the worker itself reports between arrival and end, so a queue at
 * the worker cannot inflate its own allowance: the longest of late, at most 4 × the shortest. The rate is that of this router's own
 * completions: routers share a slot in the proportion of what they send, and while a slot keeps up the limit grows by one batch a round trip.
 */
export class Credits {
  readonly #creditsMax: number;
  readonly #rate: RecentRate;
  readonly #transportLeast: WindowedExtreme;
  readonly #transportMost: WindowedExtreme;
  #serviceMs = 0;
  #batch = 1;
  #outstanding = 0;

  constructor(creditsMax: number, nowMs: number) {
    this.#creditsMax = creditsMax;
    this.#rate = new RecentRate(RATE_WINDOW_MS, nowMs);
    this.#transportLeast = new WindowedExtreme(Math.min, LEAST_WINDOW_MS, nowMs);
    this.#transportMost = new WindowedExtreme(Math.max, RATE_WINDOW_MS, nowMs);
  }

  get outstanding(): number {
    return this.#outstanding;
  }

  dispatched(): void {
    this.#outstanding += 1;
  }

  /** A dispatch that ended: its round trip and the worker's share of it, ms. */
  completed(roundTripMs: number, sojournMs: number, nowMs: number): void {
    this.released();
    this.#rate.add(1, nowMs);
    const transportMs = Math.max(0, roundTripMs - sojournMs);
    this.#transportLeast.add(transportMs, nowMs);
    this.#transportMost.add(transportMs, nowMs);
  }

  /** A dispatch that will not be heard of again. */
  released(): void {
    if (this.#outstanding > 0) this.#outstanding -= 1;
  }

  /** What the worker says of itself: most requests in a batch, how long a batch takes, ms, and how many routers dispatch to the slot. */
  observe(batchRequests: number, serviceMs: number, routers: number): void {
    this.#batch = Math.max(1, Math.ceil(batchRequests / Math.max(1, routers)));
    this.#serviceMs = Math.max(0, serviceMs);
  }

  limit(nowMs: number): number {
    const least = this.#transportLeast.value() ?? 0;
    const transportMs = Math.min(this.#transportMost.value() ?? 0, TRANSPORT_OVER_LEAST_MAX * least);
    const roundTripMs = transportMs + this.#serviceMs;
    const inFlight = Math.ceil(this.#rate.perMs(nowMs) * roundTripMs) + this.#batch;
    return Math.min(this.#creditsMax, Math.max(CREDITS_MIN, inFlight));
  }

  available(nowMs: number): boolean {
    return this.#outstanding < this.limit(nowMs);
  }
}
