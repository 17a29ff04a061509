import { Credits } from './credits.ts';

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
  /** Predicted work in the worker's queue at the last snapshot, and when this router got it. */
  queuedMs: number;
  queuedAtMs: number;
  lastSequenceSeen = -1;
  /** Predicted work of own dispatches that the snapshot did not contain yet. */
  unseenMs = 0;

  constructor(pool: string, partition: number, status: WorkerStatus, creditsMax: number, nowMs: number) {
    this.pool = pool;
    this.partition = partition;
    this.credits = new Credits(creditsMax, nowMs);
    this.status = status;
    this.statusAtMs = nowMs;
    this.queuedMs = status.queuedPredictedMs;
    this.queuedAtMs = nowMs;
  }

  /** Milliseconds until a dispatch made now would start: the snapshot's queue drained since, and own dispatches it did not contain. */
  expectedWaitMs(nowMs: number): number {
    const speed = this.status.speed > 0 ? this.status.speed : 1;
    const drained = Math.max(0, this.queuedMs / speed - (nowMs - this.queuedAtMs));
    return drained + this.unseenMs / speed;
  }

  dispatch(entry: Outstanding): void {
    this.outstanding.set(entry.sequence, entry);
    this.credits.dispatched();
    this.unseenMs += entry.predictedMs;
  }

  /** Takes what ended off the outstanding ones, whichever life of whichever worker ended it; answers how many that were. */
  complete(ack: SlotAck, nowMs: number): number {
    let ended = 0;
    ack.completed.forEach((sequence, index) => {
      const entry = this.outstanding.get(sequence);
      if (entry === undefined) return;
      this.#forget(entry);
      this.credits.completed(nowMs - entry.dispatchedAtMs, ack.sojournMs[index] ?? 0, nowMs);
      ended += 1;
    });
    return ended;
  }

  /** What the holder says of its queue. */
  observe(ack: SlotAck, nowMs: number): void {
    this.credits.observe(ack.batchRequests, ack.serviceMs, ack.routers);
    this.#see(ack.lastSequenceSeen);
    this.queuedMs = ack.queuedPredictedMs;
    this.queuedAtMs = nowMs;
  }

  /** Another worker holds the slot, or another life of the same: nothing of what is outstanding has reached it yet. */
  takenOver(status: WorkerStatus, nowMs: number): void {
    this.lastSequenceSeen = -1;
    this.queuedMs = status.queuedPredictedMs;
    this.queuedAtMs = nowMs;
    this.unseenMs = 0;
    for (const entry of this.outstanding.values()) this.unseenMs += entry.predictedMs;
  }

  /** Gives up what nobody can be waiting for any more; answers how many. */
  sweep(nowMs: number): number {
    let swept = 0;
    for (const entry of this.outstanding.values()) {
      if (entry.giveUpAtMs > nowMs) continue;
      this.#forget(entry);
      this.credits.released();
      swept += 1;
    }
    return swept;
  }

  #see(sequence: number): void {
    if (sequence <= this.lastSequenceSeen) return;
    this.lastSequenceSeen = sequence;
    let unseen = 0;
    for (const entry of this.outstanding.values()) if (entry.sequence > sequence) unseen += entry.predictedMs;
    this.unseenMs = unseen;
  }

  #forget(entry: Outstanding): void {
    this.outstanding.delete(entry.sequence);
    if (entry.sequence > this.lastSequenceSeen)
      this.unseenMs = Math.max(0, this.unseenMs - entry.predictedMs);
  }
}
