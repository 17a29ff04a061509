import type { LoadedModel, ScoreItem } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Counter } from '../../ports/telemetry.ts';
import type { WorkerWindows } from './windows.ts';
import { kernelFor, type WorkerJob } from './worker-job.ts';

export interface ShadowScoringDeps {
  pool: string;
  clock: Clock;
  windows: Pick<WorkerWindows, 'shadowScored' | 'shadowDropped'>;
  /** By pool and outcome: `scored`, `failed`, `dropped`. */
  requests: Counter;
  /** The version, where this worker has it. */
  modelFor(family: string, version: string): LoadedModel | undefined;
  /** Nothing waits and nothing runs. */
  isIdle(): boolean;
  /** Time that real work has computed so far, ms. */
  busyMs(): number;
}

interface Shadowed {
  readonly job: WorkerJob;
  readonly item: ScoreItem;
  readonly version: string;
  readonly sinceMs: number;
}

/** Requests that wait for a quiet moment; each holds its tensors. */
const WAITING_MAX = 8;
const WAITING_MS_MAX = 1_000;
/** A worker that is busier than this over half a second has nothing to spare. */
const BUSY_SHARE_MAX = 0.6;
const BUSY_WINDOW_MS = 500;
/** After each run, so many times as long nothing runs in shadow: at most a fifth of the time. */
const REST_FACTOR = 4;

/**
 * Scores a sample of the requests that were answered once more, by a version on its way to live: only while the worker has nothing else to do, one
 * request at a time, and never more than a fifth of the time. What finds no quiet moment is dropped and counted. Nothing comes of the scores but
 * statistics: the request has had its answer, and its acknowledgement.
 */
export class ShadowScoring {
  readonly #deps: ShadowScoringDeps;
  #waiting: Shadowed[] = [];
  #running: LoadedModel | undefined;
  #restUntilMs = 0;
  #isWaking = false;
  #busy: { atMs: number; busyMs: number; share: number };

  constructor(deps: ShadowScoringDeps) {
    this.#deps = deps;
    this.#busy = { atMs: deps.clock.monotonicMs(), busyMs: deps.busyMs(), share: 0 };
  }

  /** A request that was answered; it is taken where its dispatch says that it is of the sample. */
  offer(job: WorkerJob, item: ScoreItem): void {
    const version = job.delivery.value.shadowVersion;
    if (version === null) return;
    this.#waiting.push({ job, item, version, sinceMs: this.#deps.clock.monotonicMs() });
    if (this.#waiting.length > WAITING_MAX) this.#drop(this.#waiting.shift());
    this.proceed();
  }

  /** Runs the next one if now is a quiet moment; looks again by itself while any waits. */
  proceed(): void {
    const { clock, isIdle } = this.#deps;
    const nowMs = clock.monotonicMs();
    while ((this.#waiting[0]?.sinceMs ?? nowMs) < nowMs - WAITING_MS_MAX) this.#drop(this.#waiting.shift());
    if (this.#running !== undefined || this.#waiting.length === 0) return;
    const isQuiet = isIdle() && nowMs >= this.#restUntilMs && this.#busyShare(nowMs) <= BUSY_SHARE_MAX;
    if (isQuiet) this.#run();
    else this.#wakeSoon(nowMs);
  }

  /** Whether a model computes in shadow. */
  isUsing(model: LoadedModel): boolean {
    return this.#running === model;
  }

  #run(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    const { job, item, version } = next;
    const { kernel, memory, model: family } = job.delivery.value;
    const model = this.#deps.modelFor(family, version);
    if (model === undefined) {
      this.#drop(next);
      this.proceed();
      return;
    }
    const { clock, windows } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#running = model;
    const end = (outcome: 'scored' | 'failed'): void => {
      this.#running = undefined;
      this.#count(outcome);
      const nowMs = clock.monotonicMs();
      this.#restUntilMs = nowMs + REST_FACTOR * (nowMs - startedMs);
      this.proceed();
    };
    model.run([item], kernelFor(model, kernel), memory).then(
      ({ items: [result], computeMs, bytesMoved }) => {
        if (result?.status !== 'scored') return end('failed');
        windows.shadowScored(job, version, result.scores, computeMs, bytesMoved);
        end('scored');
      },
      () => end('failed'),
    );
  }

  #drop(dropped: Shadowed | undefined): void {
    if (dropped === undefined) return;
    this.#deps.windows.shadowDropped(dropped.job.delivery.value, dropped.version);
    this.#count('dropped');
  }

  #count(outcome: 'scored' | 'failed' | 'dropped'): void {
    this.#deps.requests.add(1, { pool: this.#deps.pool, outcome });
  }

  /** Of the last half second or more that real work computed. */
  #busyShare(nowMs: number): number {
    const elapsedMs = nowMs - this.#busy.atMs;
    if (elapsedMs >= BUSY_WINDOW_MS) {
      const busyMs = this.#deps.busyMs();
      this.#busy = { atMs: nowMs, busyMs, share: (busyMs - this.#busy.busyMs) / elapsedMs };
    }
    return this.#busy.share;
  }

  #wakeSoon(nowMs: number): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    this.#deps.clock.after(Math.max(LOOK_AGAIN_MS, this.#restUntilMs - nowMs), () => {
      this.#isWaking = false;
      this.proceed();
    });
  }
}

const LOOK_AGAIN_MS = 20;
