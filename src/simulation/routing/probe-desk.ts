import type { ProbeReading } from './chooser.ts';

/** Latencies are kept by how many requests were in flight, up to this many. */
const IN_FLIGHT_MAX = 63;
const KEPT = 16;

interface Probe {
  router: number;
  worker: number;
  readonly reading: { requestsInFlight: number; latencyMs: number };
}

/**
 * Probes under way, by number, and what workers answer them. Of its latency a worker tells the median of its recent ones that began with as many requests in flight as it has now, or
 * the nearest number that there are any of (Wydrowski et al., NSDI 2024, section 4).
 */
export class ProbeDesk {
  /** Worker, then requests in flight, then the latest. */
  readonly #latencyMs: Float32Array;
  readonly #counts: Int32Array;
  readonly #sorted = new Float64Array(KEPT);
  readonly #probes: Probe[] = [];
  readonly #free: number[] = [];

  constructor(workers: number) {
    const cells = workers * (IN_FLIGHT_MAX + 1);
    this.#latencyMs = new Float32Array(cells * KEPT);
    this.#counts = new Int32Array(cells);
  }

  /** Whether anybody probes: else there is nobody to keep latencies for. */
  get areUsed(): boolean {
    return this.#probes.length > 0;
  }

  add(worker: number, inFlight: number, latencyMs: number): void {
    const cell = cellOf(worker, Math.min(inFlight, IN_FLIGHT_MAX));
    const count = this.#counts[cell] ?? 0;
    this.#latencyMs[cell * KEPT + (count % KEPT)] = latencyMs;
    this.#counts[cell] = count + 1;
  }

  take(router: number, worker: number): number {
    const free = this.#free.pop();
    if (free === undefined) {
      this.#probes.push({ router, worker, reading: { requestsInFlight: 0, latencyMs: 0 } });
      return this.#probes.length - 1;
    }
    const probe = this.#at(free);
    probe.router = router;
    probe.worker = worker;
    return free;
  }

  release(number: number): void {
    this.#free.push(number);
  }

  routerOf(number: number): number {
    return this.#at(number).router;
  }

  workerOf(number: number): number {
    return this.#at(number).worker;
  }

  /** Reads the worker at the moment at which the probe is there. */
  read(number: number, inFlight: number): void {
    const { worker, reading } = this.#at(number);
    reading.requestsInFlight = inFlight;
    reading.latencyMs = this.#latencyOf(worker, inFlight);
  }

  readingOf(number: number): ProbeReading {
    return this.#at(number).reading;
  }

  /** 0 where the worker has ended nothing yet. */
  #latencyOf(worker: number, inFlight: number): number {
    const wanted = Math.min(inFlight, IN_FLIGHT_MAX);
    for (let apart = 0; apart <= IN_FLIGHT_MAX; apart++) {
      const below = this.#keptOf(worker, wanted - apart);
      if (below > 0) return this.#median(cellOf(worker, wanted - apart), below);
      const above = this.#keptOf(worker, wanted + apart);
      if (above > 0) return this.#median(cellOf(worker, wanted + apart), above);
    }
    return 0;
  }

  #keptOf(worker: number, inFlight: number): number {
    if (inFlight < 0 || inFlight > IN_FLIGHT_MAX) return 0;
    return Math.min(this.#counts[cellOf(worker, inFlight)] ?? 0, KEPT);
  }

  #at(number: number): Probe {
    const probe = this.#probes[number];
    if (probe === undefined) throw new RangeError(`there is no probe ${number}`);
    return probe;
  }

  /** By insertion: there are few, and a worker is asked some times per request. */
  #median(cell: number, count: number): number {
    const sorted = this.#sorted;
    for (let i = 0; i < count; i++) {
      const latencyMs = this.#latencyMs[cell * KEPT + i] ?? 0;
      let place = i;
      while (place > 0 && (sorted[place - 1] ?? 0) > latencyMs) {
        sorted[place] = sorted[place - 1] ?? 0;
        place -= 1;
      }
      sorted[place] = latencyMs;
    }
    return sorted[count >> 1] ?? 0;
  }
}

function cellOf(worker: number, inFlight: number): number {
  return worker * (IN_FLIGHT_MAX + 1) + inFlight;
}
