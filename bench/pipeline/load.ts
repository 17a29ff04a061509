import { partitionForKey } from '../../src/core/request/partition.ts';
import type { InboundRecord, MessageBus, Reader } from '../../src/ports/message-bus.ts';
import type { EncodedRequests } from './requests.ts';
import { percentile } from './statistics.ts';

/** What one stretch of load showed, as its sender and last consumer saw it. */
export interface Observed {
  perSecond: number;
  latencyMsP50: number;
  latencyMsP99: number;
  completed: number;
}

/** Both must have passed before anything is measured: so long, and so many requests. */
export interface WarmUp {
  ms: number;
  requests: number;
}

export interface LoadOptions {
  bus: MessageBus;
  /** Where requests go in, and where what came of them comes out. */
  ingress: string;
  results: string;
  requests: EncodedRequests;
  /** Around the measured stretch, the warm-up left out. */
  onMeasuring?(at: 'start' | 'end'): void;
}

const TICK_MS = 1;
const CHECK_MS = 20;
const WARM_UP_MAX_MS = 90_000;
const DRAIN_MS = 60_000;

/** Sender and last consumer of a pipeline or a relay, in a process that is neither. A record is known by its key. */
export class Load {
  readonly #options: LoadOptions;
  readonly #partitions: number;
  readonly #sentMs = new Map<string, number>();
  #reader: Reader | undefined;
  #sent = 0;
  #completed = 0;
  #latenciesMs: number[] | undefined;
  #onCompleted: () => void = () => undefined;
  #failure: unknown;

  private constructor(options: LoadOptions, partitions: number) {
    this.#options = options;
    this.#partitions = partitions;
  }

  static async open(options: LoadOptions): Promise<Load> {
    const load = new Load(options, await options.bus.partitionCount(options.ingress));
    load.#reader = await options.bus.read({ topics: [options.results], startAt: 'latest' }, (records) => {
      for (const record of records) load.#complete(record);
    });
    return load;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Keeps `window` requests in flight: a new one leaves when one is answered. */
  async closedLoop(window: number, warmUp: WarmUp, measureMs: number): Promise<Observed> {
    let open = true;
    this.#onCompleted = () => {
      if (open) this.#send(performance.now());
    };
    for (let n = 0; n < window; n += 1) this.#send(performance.now());
    await this.#warmUp(warmUp);
    const observed = await this.#measure(measureMs);
    open = false;
    await this.#drain();
    return observed;
  }

  /** One request each 1/`perSecond`, whatever became of those before; latency counts from the time at which it should have left. */
  async openLoop(perSecond: number, warmUp: WarmUp, measureMs: number): Promise<Observed> {
    this.#onCompleted = () => undefined;
    const startedMs = performance.now();
    let due = 0;
    const timer = setInterval(() => {
      for (; startedMs + (due * 1_000) / perSecond <= performance.now(); due += 1)
        this.#send(startedMs + (due * 1_000) / perSecond);
    }, TICK_MS);
    await this.#warmUp(warmUp);
    const observed = await this.#measure(measureMs);
    clearInterval(timer);
    await this.#drain();
    return observed;
  }

  async close(): Promise<void> {
    await this.#reader?.close();
  }

  #send(intendedMs: number): void {
    const { bus, ingress, requests } = this.#options;
    const { key, value } = requests.make(this.#sent);
    this.#sent += 1;
    this.#sentMs.set(key.toString('latin1'), intendedMs);
    bus
      .produce({ topic: ingress, partition: partitionForKey(key, this.#partitions), key, value })
      .catch((error: unknown) => {
        this.#failure ??= error;
      });
  }

  #complete({ key }: InboundRecord): void {
    const id = key?.toString('latin1') ?? '';
    const sentMs = this.#sentMs.get(id);
    if (sentMs === undefined || !this.#sentMs.delete(id)) return;
    this.#completed += 1;
    this.#latenciesMs?.push(performance.now() - sentMs);
    this.#onCompleted();
  }

  async #warmUp({ ms, requests }: WarmUp): Promise<void> {
    const untilMs = performance.now() + WARM_UP_MAX_MS;
    const before = this.#completed;
    await this.#pause(ms);
    while (this.#completed - before < requests && performance.now() < untilMs) await this.#pause(CHECK_MS);
  }

  async #measure(measureMs: number): Promise<Observed> {
    const latencies: number[] = [];
    const startedMs = performance.now();
    const before = this.#completed;
    this.#options.onMeasuring?.('start');
    this.#latenciesMs = latencies;
    await this.#pause(measureMs);
    this.#latenciesMs = undefined;
    this.#options.onMeasuring?.('end');
    const completed = this.#completed - before;
    return {
      completed,
      perSecond: (completed * 1_000) / (performance.now() - startedMs),
      latencyMsP50: percentile(latencies, 0.5),
      latencyMsP99: percentile(latencies, 0.99),
    };
  }

  async #drain(): Promise<void> {
    const untilMs = performance.now() + DRAIN_MS;
    while (this.#sentMs.size > 0) {
      if (performance.now() > untilMs)
        throw new Error(`${this.#sentMs.size} of ${this.#sent} requests were not answered`);
      await this.#pause(CHECK_MS);
    }
  }

  async #pause(delayMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (this.#failure !== undefined) throw this.#failure;
  }
}
