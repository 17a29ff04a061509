import type { LedgerSummary, OutcomeCounts } from '../../core/outcome/ledger.ts';

/** What came of one run. Times are virtual; 0 is when traffic began. Plain JSON. */
export interface SimulationReport {
  readonly format: 1;
  /** No device and no broker took part. */
  readonly simulated: true;
  readonly seed: number;
  /** Of traffic, ms; the drain comes after it. */
  readonly durationMs: number;
  readonly fleet: string;
  readonly policy: { readonly name: string; readonly version: number; readonly digest: string };
  readonly traffic: string;
  /** The books of an outside reader. */
  readonly ledger: LedgerSummary;
  readonly latency: LatencySummary;
  /** Of requests that were routed, the largest first. */
  readonly leaves: readonly LeafShare[];
  readonly pools: readonly PoolSummary[];
  readonly series: Series;
  /** What a reader must know before they believe the figures. */
  readonly notes: readonly string[];
}

/** From the moment a request is due to the moment an outside reader has its result: scored and degraded ones. */
export interface LatencySummary {
  readonly samples: number;
  /** Exact, by nearest rank. Null where fewer than ten samples lie beyond it: then it says nothing. */
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly p999Ms: number | null;
  readonly maxMs: number | null;
}

export interface LeafShare {
  readonly leaf: string;
  readonly requests: number;
  readonly share: number;
}

export interface PoolSummary {
  readonly pool: string;
  readonly accelerator: string;
  readonly capacityClass: string;
  readonly region: string | null;
  readonly slots: number;
  /** Requests that it answered. */
  readonly answered: number;
  /** Busy time of its workers over the time that they were up, while traffic came; null where none was. */
  readonly utilisation: number | null;
  readonly queuedMax: number;
}

/** One value per step of `stepMs`; each is of the step that ends at `(index + 1) · stepMs`. */
export interface Series {
  readonly stepMs: number;
  readonly arrivals: readonly number[];
  readonly outcomes: { readonly [Outcome in keyof OutcomeCounts]: readonly number[] };
  /** Requests without a result, at the end of the step. */
  readonly inFlight: readonly number[];
  /** Percentiles of a step are within this share of the exact ones. */
  readonly relativeError: number;
  /** Null for a step without a result. */
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
  readonly pools: readonly PoolSeries[];
}

export interface PoolSeries {
  readonly pool: string;
  /** Requests in the queues of its workers, at the end of the step. */
  readonly queued: readonly number[];
  readonly workers: readonly number[];
  /** Null for a step in which it had no worker. */
  readonly utilisation: readonly (number | null)[];
}
