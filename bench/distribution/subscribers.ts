import { Worker } from 'node:worker_threads';
import type { SubscriberData, SubscriberMessage } from './messages.ts';

type Applied = Extract<SubscriberMessage, { kind: 'applied' }>;
type Pause = Extract<SubscriberMessage, { kind: 'pause' }>;

const PATIENCE_MS = 60_000;
/** Threads that start at the same time: all of them at once would stand in each other's way. */
const STARTING_MAX = 4;

/** The threads, and what they told so far. */
export class Subscribers {
  readonly applied: Applied[] = [];
  readonly pauses: Pause[] = [];
  readonly awayMs: number[] = [];
  readonly #workers: Worker[] = [];
  readonly #listeners = new Set<() => void>();
  #started = 0;
  #failure: unknown;

  static async start(count: number, data: Omit<SubscriberData, 'index'>): Promise<Subscribers> {
    const subscribers = new Subscribers();
    for (let index = 0; index < count; index += 1) {
      subscribers.#open({ ...data, index });
      const isLast = index === count - 1;
      const startedMin = isLast ? count : index + 2 - STARTING_MAX;
      await subscribers.until('the threads have started', () => subscribers.#started >= startedMin);
    }
    return subscribers;
  }

  get count(): number {
    return this.#workers.length;
  }

  /** When each subscriber first ran this epoch or a later one; undefined while one does not. */
  appliedMs(epoch: number, isIt: (applied: Applied) => boolean = () => true): number[] | undefined {
    const times = new Map<number, number>();
    for (const applied of this.applied) {
      if (applied.epoch < epoch || !isIt(applied)) continue;
      times.set(applied.index, Math.min(times.get(applied.index) ?? Number.POSITIVE_INFINITY, applied.atMs));
    }
    return times.size === this.count ? [...times.values()] : undefined;
  }

  async until(what: string, isSo: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`not in ${PATIENCE_MS} ms: ${what}`)), PATIENCE_MS);
    const check = (): void => {
      if (this.#failure !== undefined) reject(this.#failure);
      else if (isSo()) resolve();
    };
    this.#listeners.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(check);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #open(workerData: SubscriberData): void {
    const worker = new Worker(new URL('./subscriber.ts', import.meta.url), { workerData });
    worker.on('message', (message: SubscriberMessage) => this.#hear(message));
    worker.on('error', (error) => {
      this.#failure = error;
      this.#tell();
    });
    this.#workers.push(worker);
  }

  #hear(message: SubscriberMessage): void {
    switch (message.kind) {
      case 'started':
        this.#started += 1;
        break;
      case 'applied':
        this.applied.push(message);
        break;
      case 'pause':
        this.pauses.push(message);
        break;
      case 'away':
        this.awayMs.push(message.atMs);
        break;
      default:
        message satisfies never;
    }
    this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
