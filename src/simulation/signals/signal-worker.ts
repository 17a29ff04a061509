import { type BatchLimits, planBatch } from '../../core/batching/plan.ts';
import { type Work, WorkQueue } from '../../core/batching/work-queue.ts';
import { Speed } from '../../core/latency/speed.ts';
import type { ServiceProfile } from '../../inference/simulated/profiles.ts';
import { jitterFactor, meanServiceMs } from '../../inference/simulated/service-time.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { RecordedRequest } from './recorded-requests.ts';

/** A request on its way through a run. */
export interface Journey {
  readonly request: RecordedRequest;
  readonly dueMs: number;
  readonly deadlineMs: number;
  readonly leaf: number;
  /** Of its dispatch; given by the router. */
  sequence: number;
  arrivedMs: number;
}

/** What a worker does next: one batch, and what expired before it. */
export interface WorkerBatch {
  readonly expired: readonly Work<Journey>[];
  readonly batch: readonly Work<Journey>[];
  readonly serviceMs: number;
}

/** One device with its queue: the plan of a batch and the service times are those of a worker of the whole pipeline. */
export class SignalWorker {
  readonly pool: string;
  readonly slot: number;
  readonly name: string;
  readonly #queue = new WorkQueue<Journey>();
  readonly #profile: ServiceProfile;
  readonly #limits: BatchLimits;
  readonly #random: RandomStream;
  readonly #speed = new Speed(1);
  readonly #targets = new Map<string, Target>();
  isUp = true;
  isBusy = false;
  busyMs = 0;
  serviceMs = 0;
  lastSequence = -1;

  constructor(of: {
    pool: string;
    slot: number;
    profile: ServiceProfile;
    limits: BatchLimits;
    random: RandomStream;
  }) {
    this.pool = of.pool;
    this.slot = of.slot;
    this.name = `${of.pool}-${of.slot}`;
    this.#profile = of.profile;
    this.#limits = of.limits;
    this.#random = of.random;
  }

  get queued(): number {
    return this.#queue.length;
  }

  get queuedPredictedMs(): number {
    return this.#queue.predictedMs;
  }

  get speed(): number {
    return this.#speed.value();
  }

  push(work: Work<Journey>): void {
    this.#queue.push(work);
  }

  /** Names are cut out of a key once: it is asked for with every request. */
  #targetOf(key: string): Target {
    const known = this.#targets.get(key);
    if (known !== undefined) return known;
    const [kernel = '', memory = ''] = key.split(' ');
    this.#targets.set(key, { kernel, memory });
    return { kernel, memory };
  }

  /** Undefined where nothing waits. The device is busy from now on, where the batch is not empty. */
  next(nowMs: number): WorkerBatch | undefined {
    if (this.#queue.length === 0) return undefined;
    const { expired, batch } = planBatch(this.#queue, this.#limits, nowMs, (requests, candidates, key) =>
      meanServiceMs(this.#profile, { requests, candidates, ...this.#targetOf(key), density: 1 }),
    );
    const [first] = batch;
    if (first === undefined) return { expired, batch, serviceMs: 0 };
    let candidates = 0;
    let nonZero = 0;
    let predictedMs = 0;
    for (const work of batch) {
      candidates += work.candidates;
      nonZero += work.payload.request.density;
      predictedMs += work.predictedMs;
    }
    const shape = {
      requests: batch.length,
      candidates,
      ...this.#targetOf(first.batchKey),
      density: nonZero / batch.length,
    };
    const serviceMs =
      meanServiceMs(this.#profile, shape) * jitterFactor(this.#profile.jitterSigma, this.#random);
    this.isBusy = true;
    this.#speed.observe(predictedMs, serviceMs);
    return { expired, batch, serviceMs };
  }
}

interface Target {
  readonly kernel: string;
  readonly memory: string;
}

/** Of work that only runs together on one kernel and one memory domain. */
export function batchKeyOf({ kernel, memory }: Target): string {
  return `${kernel} ${memory}`;
}
