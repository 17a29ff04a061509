import type { Connection } from '../client/connection.ts';
import { schemaOf } from '../contracts/headers.ts';
import type { Records } from '../contracts/records.ts';
import type { RecordName, TopicKey } from '../contracts/topics.ts';
import { LatencySketch } from '../core/latency/sketch.ts';
import type { Reader } from '../ports/message-bus.ts';

/** What a pool did in the last seconds. */
export interface PoolView {
  pool: string;
  accelerator: string;
  simulated: boolean;
  workers: number;
  queuedMs: number;
  /** Results per second. */
  rate: number;
  p50Ms: number;
  p99Ms: number;
}

export interface PipelineView {
  pools: PoolView[];
  /** Leaf → share of the requests decided in the last seconds. */
  leafShares: Map<string, number>;
  policyEpoch: number;
  stallsPerSecond: number;
}

interface Kept<T> {
  atMs: number;
  window: T;
}

const KEPT_MS = 3_000;
const STATUS_STALE_MS = 2_000;

/** Reads the pipeline's own metrics topics, as a dashboard would. */
export class PipelineObserver {
  readonly #connection: Connection;
  #readers: Reader[] = [];
  #workerWindows: Kept<Records['WorkerWindow']>[] = [];
  #routerWindows: Kept<Records['RouterWindow']>[] = [];
  readonly #status = new Map<string, Kept<Records['PoolStatus']>>();

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  static async open(connection: Connection): Promise<PipelineObserver> {
    const observer = new PipelineObserver(connection);
    observer.#readers = await Promise.all([
      observer.#read('latency-metrics', 'WorkerWindow', (window) =>
        observer.#workerWindows.push(observer.#keep(window)),
      ),
      observer.#read('routing-metrics', 'RouterWindow', (window) =>
        observer.#routerWindows.push(observer.#keep(window)),
      ),
      observer.#read('pool-status', 'PoolStatus', (status) =>
        observer.#status.set(status.worker, observer.#keep(status)),
      ),
    ]);
    return observer;
  }

  view(): PipelineView {
    const nowMs = this.#connection.clock.monotonicMs();
    this.#workerWindows = this.#workerWindows.filter(({ atMs }) => nowMs - atMs < KEPT_MS);
    this.#routerWindows = this.#routerWindows.filter(({ atMs }) => nowMs - atMs < KEPT_MS);
    return {
      pools: this.#pools(nowMs),
      leafShares: this.#leafShares(),
      policyEpoch: Math.max(0, ...this.#routerWindows.map(({ window }) => window.policyEpoch)),
      stallsPerSecond:
        this.#routerWindows.reduce((sum, { window }) => sum + window.creditStalls, 0) / (KEPT_MS / 1_000),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.close()));
  }

  #read<N extends RecordName>(
    topic: TopicKey,
    record: N,
    take: (value: Records[N]) => void,
  ): Promise<Reader> {
    const { bus, topics, codecs } = this.#connection;
    const codec = codecs.for(record);
    return bus.read({ topics: [topics.fixed(topic)], startAt: 'latest' }, (records) => {
      for (const inbound of records) {
        if (inbound.value === null) continue;
        const decoded = codec.decode(inbound.value, schemaOf(inbound.headers));
        if (decoded.status === 'ok') take(decoded.value);
        else if (decoded.status === 'schema-unknown') codecs.learn(decoded).catch(() => undefined);
      }
    });
  }

  #keep<T>(window: T): Kept<T> {
    return { atMs: this.#connection.clock.monotonicMs(), window };
  }

  #pools(nowMs: number): PoolView[] {
    const pools = new Map<string, PoolView & { sketch: LatencySketch; counted: number }>();
    for (const { atMs, window } of this.#status.values()) {
      if (nowMs - atMs > STATUS_STALE_MS) continue;
      const known = pools.get(window.pool) ?? {
        pool: window.pool,
        accelerator: window.accelerator,
        simulated: window.simulated,
        workers: 0,
        queuedMs: 0,
        rate: 0,
        p50Ms: 0,
        p99Ms: 0,
        sketch: new LatencySketch(),
        counted: 0,
      };
      known.workers += 1;
      known.queuedMs += window.queuedPredictedMs;
      pools.set(window.pool, known);
    }
    for (const { window } of this.#workerWindows) {
      const pool = pools.get(window.pool);
      if (pool === undefined) continue;
      pool.sketch.merge(LatencySketch.fromBytes(window.endToEndSketch));
      for (const count of Object.values(window.outcomes)) pool.counted += count;
    }
    return [...pools.values()]
      .map(({ sketch, counted, ...view }) => ({
        ...view,
        rate: counted / (KEPT_MS / 1_000),
        p50Ms: sketch.quantileMs(0.5),
        p99Ms: sketch.quantileMs(0.99),
      }))
      .sort((a, b) => a.pool.localeCompare(b.pool));
  }

  #leafShares(): Map<string, number> {
    const counts = new Map<string, number>();
    let total = 0;
    for (const { window } of this.#routerWindows) {
      for (const [leaf, count] of Object.entries(window.leaves)) {
        counts.set(leaf, (counts.get(leaf) ?? 0) + count);
        total += count;
      }
    }
    return new Map([...counts].sort((a, b) => b[1] - a[1]).map(([leaf, count]) => [leaf, count / total]));
  }
}
