import { Speed } from '../../core/latency/speed.ts';

/** How busy a worker is, and how fast: for heartbeats, acknowledgements and metrics. */
export interface WorkerLoad {
  queued: number;
  running: number;
  /** Predicted work that waits or is computed, less what is done of it. */
  queuedPredictedMs: number;
  enqueuedPredictedMs: number;
  completedPredictedMs: number;
  busyMs: number;
  /** Predicted work per busy time. */
  speed: number;
  serviceMs: number;
  batchRequests: number;
}

export interface LoadMeterConfig {
  /** Predicted work per busy time that the device's profile lets expect, before anything was measured. */
  expectedSpeed: number;
  batchRequestsMax: number;
  /** Of a batch's predicted service time, ms. */
  batchMsMax: number;
}

const SERVICE_DECAY = 0.9;

/** Measures what came, what ran and for how long: routers give credits, and choose slots, by it. */
export class LoadMeter {
  readonly #config: LoadMeterConfig;
  readonly #speed: Speed;
  #serviceMs = 0;
  /** Predicted work of one request, decayed mean, ms. */
  #requestMs = 0;
  #enqueuedPredictedMs = 0;
  #completedPredictedMs = 0;
  #busyMs = 0;

  constructor(config: LoadMeterConfig) {
    this.#config = config;
    this.#speed = new Speed(config.expectedSpeed);
  }

  get busyMs(): number {
    return this.#busyMs;
  }

  /** Predicted work per busy time. */
  get speed(): number {
    return this.#speed.value();
  }

  enqueued(predictedMs: number): void {
    this.#enqueuedPredictedMs += predictedMs;
  }

  /** A batch of so many requests was computed. */
  completed(requests: number, predictedMs: number, computeMs: number): void {
    this.#ran(computeMs);
    this.#completedPredictedMs += predictedMs;
    this.#speed.observe(predictedMs, computeMs);
    this.#requestMs = decayed(this.#requestMs, predictedMs / requests);
  }

  /** A batch kept the device busy, and came to nothing. */
  failed(computeMs: number): void {
    this.#ran(computeMs);
  }

  load(now: Pick<WorkerLoad, 'queued' | 'running' | 'queuedPredictedMs'>): WorkerLoad {
    return {
      ...now,
      enqueuedPredictedMs: this.#enqueuedPredictedMs,
      completedPredictedMs: this.#completedPredictedMs,
      busyMs: this.#busyMs,
      speed: this.speed,
      serviceMs: this.#serviceMs,
      batchRequests: this.#batchRequests(),
    };
  }

  #ran(computeMs: number): void {
    this.#busyMs += computeMs;
    this.#serviceMs = decayed(this.#serviceMs, computeMs);
  }

  /** How many requests like those of late make a full batch: what a router should have under way so that no batch goes out half full. */
  #batchRequests(): number {
    const { batchRequestsMax, batchMsMax } = this.#config;
    return this.#requestMs === 0
      ? batchRequestsMax
      : Math.max(1, Math.min(batchRequestsMax, Math.floor(batchMsMax / this.#requestMs)));
  }
}

/** 0 is no value yet. */
function decayed(mean: number, value: number): number {
  return mean === 0 ? value : SERVICE_DECAY * mean + (1 - SERVICE_DECAY) * value;
}
