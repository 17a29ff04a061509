import type { Generator } from '../../core/random/generator.ts';
import type { DispatchEnd, WorkerSnapshot } from '../../core/routing/worker-snapshot.ts';

/**
 * Chooses workers for one router, from what that router could know. Workers and routers are numbered from 0. The records that a chooser is
 * given hold for the call alone: the simulation fills them anew for the next.
 */
export interface Chooser {
  /**
   * The worker for a request. The simulation dispatches to it at once, and then tells `dispatched`.
   * @param predictedMs the request's work, as predicted, at speed 1
   */
  choose(predictedMs: number, nowMs: number): number;
  dispatched?(worker: number, sequence: number, predictedMs: number, nowMs: number): void;
  /** One of this router's dispatches has ended, and how the worker's queue is. */
  acknowledged?(worker: number, end: DispatchEnd, snapshot: QueueSnapshot, nowMs: number): void;
  /** A worker's heartbeat, which every router gets. */
  heard?(worker: number, snapshot: QueueSnapshot, nowMs: number): void;
  probed?(worker: number, reading: ProbeReading, nowMs: number): void;
  /** Called once before the first request, and at every change. */
  membersChanged?(members: Members, nowMs: number): void;
}

/** With how many requests wait or run: what choosers without predictions go by. */
export interface QueueSnapshot extends WorkerSnapshot {
  readonly queuedRequests: number;
}

export interface Members {
  /** By worker. */
  readonly isLive: readonly boolean[];
  /** Those that are alive, ascending. */
  readonly routers: readonly number[];
}

/** What a worker answers to a probe. */
export interface ProbeReading {
  readonly requestsInFlight: number;
  /** The median of its recent sojourn times with about so many requests in flight, ms. */
  readonly latencyMs: number;
}

/** A chooser's place in the simulation. */
export interface Seat {
  readonly router: number;
  /** The speed that each worker declares: work per ms. */
  readonly speeds: readonly number[];
  readonly random: Generator;
  /** Asks a worker how it is: the answer comes back as `probed`, after a hop there and one back. */
  probe(worker: number): void;
  readonly truth: Truth;
}

/** What no router can know; for yardsticks. */
export interface Truth {
  /** The real work of the request that is being chosen for, at speed 1. */
  workMs(): number;
  /** When the worker would begin with a request that is dispatched now, in ms from now, without the hop. */
  backlogMs(worker: number): number;
  /** Real work per ms. */
  speed(worker: number): number;
}

export type CreateChooser = (seat: Seat) => Chooser;
