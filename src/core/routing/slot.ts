import { Credits } from './credits.ts';
import type { WorkerBacklog } from './worker-backlog.ts';

/** A model version that a worker can run. */
export interface VersionServed {
  family: string;
  version: string;
  variant: 'baseline' | 'enhanced';
  /** It was published, and serves only who names it; others serve also who names none. */
  isPublished: boolean;
}

/** What a worker's heartbeat says, as far as routing needs it. */
export interface WorkerStatus {
  pool: string;
  capacityClass: 'dedicated' | 'opportunistic';
  accelerator: string;
  worker: string;
  incarnation: string;
  sequence: number;
  slots: readonly number[];
  kernels: readonly string[];
  memories: readonly string[];
  /** `FleetState` keeps them newest first. */
  models: readonly VersionServed[];
  speed: number;
  batchRequests: number;
  queuedPredictedMs: number;
}

/** What a worker's acknowledgement says to the router that dispatched. */
export interface SlotAck {
  pool: string;
  slot: number;
  incarnation: string;
  completed: readonly number[];
  sojournMs: readonly number[];
  serviceMs: number;
  lastSequenceSeen: number;
  queuedPredictedMs: number;
  /** Predicted work that ever entered the worker's queue, from all routers. */
  enqueuedPredictedMs: number;
  batchRequests: number;
  /** That dispatched to the slot of late. */
  routers: number;
}

export interface Outstanding {
  sequence: number;
  predictedMs: number;
  dispatchedAtMs: number;
  /** When nobody can still be waiting for it; it is then given up. */
  giveUpAtMs: number;
}

/** One partition of one pool's dispatch topic, as this router sees it. */
export class Slot {
  readonly pool: string;
  readonly partition: number;
  readonly credits: Credits;
  readonly outstanding = new Map<number, Outstanding>();
  status: WorkerStatus;
  statusAtMs: number;
  /** That of the worker which holds it; its slots share one. */
  backlog: WorkerBacklog;

  constructor(
    pool: string,
    partition: number,
    status: WorkerStatus,
    backlog: WorkerBacklog,
    creditsMax: number,
    nowMs: number,
  ) {
    this.pool = pool;
    this.partition = partition;
    this.credits = new Credits(creditsMax, nowMs);
    this.status = status;
    this.statusAtMs = nowMs;
    this.backlog = backlog;
  }

  /** Milliseconds that a dispatch made now would wait at the worker. */
  expectedWaitMs(nowMs: number): number {
    return this.backlog.waitMs(nowMs);
  }

  dispatch(entry: Outstanding): void {
    this.outstanding.set(entry.sequence, entry);
    this.credits.dispatched();
    this.backlog.dispatched(entry.sequence, entry.predictedMs, entry.dispatchedAtMs);
  }

  /** Takes what ended off the outstanding ones, whichever life of whichever worker ended it; answers how many that were. */
  complete(ack: SlotAck, nowMs: number): number {
    const isHolder = ack.incarnation === this.status.incarnation;
    let ended = 0;
    ack.completed.forEach((sequence, index) => {
      const entry = this.outstanding.get(sequence);
      if (entry === undefined) return;
      const sojournMs = ack.sojournMs[index] ?? 0;
      this.outstanding.delete(sequence);
      this.credits.completed(nowMs - entry.dispatchedAtMs, sojournMs, nowMs);
      if (isHolder) this.backlog.ended({ sequence, sojournMs, busyMs: 0 }, nowMs);
      else this.backlog.givenUp(sequence);
      ended += 1;
    });
    return ended;
  }

  /** What the holder says of its queue. */
  observe(ack: SlotAck, nowMs: number): void {
    this.credits.observe(ack.batchRequests, ack.serviceMs, ack.routers);
    // They come in the order in which they were sent, whatever a longer way than before makes of their moments.
    const takenAtMs = Math.max(this.backlog.takenAtMs, nowMs - this.backlog.hopMs);
    this.backlog.observe({
      takenAtMs,
      queuedMs: ack.queuedPredictedMs,
      lastSequenceSeen: ack.lastSequenceSeen,
      enqueuedMs: ack.enqueuedPredictedMs,
    });
  }

  /** Another worker holds the slot, or another life of the same: nothing of what is outstanding has reached it yet. */
  takenOver(backlog: WorkerBacklog, nowMs: number): void {
    for (const { sequence, predictedMs } of this.outstanding.values()) {
      this.backlog.givenUp(sequence);
      backlog.dispatched(sequence, predictedMs, nowMs);
    }
    this.backlog = backlog;
  }

  /** Gives up what nobody can be waiting for any more; answers how many. */
  sweep(nowMs: number): number {
    let swept = 0;
    for (const entry of this.outstanding.values()) {
      if (entry.giveUpAtMs > nowMs) continue;
      this.outstanding.delete(entry.sequence);
      this.backlog.givenUp(entry.sequence);
      this.credits.released();
      swept += 1;
    }
    return swept;
  }
}
