import type { PoolStatus, WorkerWindow } from '../../contracts/records.ts';
import { LatencySketch } from '../../core/latency/sketch.ts';
import { own } from '../../core/own.ts';
import {
  type DomainObservation,
  domainOf,
  type LatencySummary,
  type Metric,
  type TuningObservation,
} from '../../core/tuning/tuning-observation.ts';
import type { limitsOf } from '../../core/tuning/tuning-state.ts';
import { SeenWindows } from './seen-windows.ts';

interface DomainCounts {
  readonly pool: string;
  readonly memory: string;
  requests: number;
  readonly sketches: Readonly<Record<Metric, LatencySketch>>;
}

interface PoolCounts {
  readonly sum: number;
  readonly beats: number;
  /** Of any of its workers. */
  readonly simulated: boolean;
}
const NO_BEATS: PoolCounts = { sum: 0, beats: 0, simulated: false };

/** The end of a period is noticed a twentieth of it late at most, and log time is not the monotonic clock's. */
const WHOLE = 0.9;
/** Merges the windows of one policy's requests by pool and memory domain; what an earlier version decided is not counted. */
export class TuningWindows {
  #version: number | undefined;
  #sinceEpoch = 0;
  #sinceMs = 0;
  #domains = new Map<string, DomainCounts>();
  #pools = new Map<string, PoolCounts>();
  readonly #seen = new SeenWindows();

  takeWindow(window: WorkerWindow): void {
    if (!this.#seen.isNew(`${window.worker} ${window.incarnation}`, window.sequence)) return;
    if (window.policyEpoch < this.#sinceEpoch || window.arm !== 'STABLE') return;
    // What cannot be read counts for nothing, not for half.
    const queue = LatencySketch.fromBytes(window.queueSketch);
    const kernel = LatencySketch.fromBytes(window.computeSketch);
    const endToEnd = LatencySketch.fromBytes(window.endToEndSketch);
    const counts = this.#countsOf(window.pool, window.memory);
    for (const many of Object.values(window.outcomes)) counts.requests += many;
    counts.sketches.queue.merge(queue);
    counts.sketches.kernel.merge(kernel);
    counts.sketches.endToEnd.merge(endToEnd);
  }

  takeStatus(status: PoolStatus): void {
    const { sum, beats, simulated } = this.#pools.get(status.pool) ?? NO_BEATS;
    this.#pools.set(status.pool, {
      sum: sum + status.utilisation,
      beats: beats + 1,
      simulated: simulated || status.simulated,
    });
  }

  /** @param nowMs monotonic */
  begin(version: number, epoch: number, nowMs: number): void {
    this.#version = version;
    this.#sinceEpoch = epoch;
    this.#clear(nowMs);
  }

  /**
   * What was seen since the last call; undefined where that is not a whole period, since another version went live in it.
   * @param nowMs monotonic
   */
  observe(
    version: number,
    epoch: number,
    limits: ReturnType<typeof limitsOf>,
    wholeMs: number,
    nowMs: number,
  ): Pick<TuningObservation, 'periodMs' | 'domains'> | undefined {
    if (this.#version !== version) {
      this.begin(version, epoch, nowMs);
      return undefined;
    }
    const periodMs = nowMs - this.#sinceMs;
    if (periodMs < WHOLE * wholeMs) return undefined;
    const domains = [...this.#domains].map(([name, counts]): [string, DomainObservation] => [
      name,
      this.#observeDomain(counts, own(limits, name)),
    ]);
    this.#clear(nowMs);
    return { periodMs, domains: Object.fromEntries(domains) };
  }

  #clear(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#domains = new Map();
    this.#pools = new Map();
  }

  #observeDomain(
    { pool, memory, requests, sketches }: DomainCounts,
    limits: Readonly<Record<Metric, number>> | undefined,
  ): DomainObservation {
    const { sum, beats, simulated } = this.#pools.get(pool) ?? NO_BEATS;
    const of = (metric: Metric): LatencySummary => summarise(sketches[metric], limits?.[metric]);
    return {
      pool,
      memory,
      requests,
      utilisation: beats === 0 ? 0 : sum / beats,
      simulated,
      latency: { queue: of('queue'), kernel: of('kernel'), endToEnd: of('endToEnd') },
    };
  }

  #countsOf(pool: string, memory: string): DomainCounts {
    const name = domainOf(pool, memory);
    const known = this.#domains.get(name) ?? {
      pool,
      memory,
      requests: 0,
      sketches: { queue: new LatencySketch(), kernel: new LatencySketch(), endToEnd: new LatencySketch() },
    };
    this.#domains.set(name, known);
    return known;
  }
}

function summarise(sketch: LatencySketch, limitMs: number | undefined): LatencySummary {
  return {
    count: sketch.count,
    p50Ms: sketch.quantileMs(0.5),
    p90Ms: sketch.quantileMs(0.9),
    p99Ms: sketch.quantileMs(0.99),
    over: limitMs === undefined ? 0 : sketch.countOver(limitMs),
  };
}
