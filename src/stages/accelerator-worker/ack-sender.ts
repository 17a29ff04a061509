import type { RecordCodec } from '../../contracts/codec.ts';
import { type Dispatch, type DispatchAck, makeDispatchAck } from '../../contracts/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OutboundRecord } from '../../ports/message-bus.ts';
import type { Delivery } from '../run-stage.ts';
import type { WorkerLoad } from './worker.ts';

export interface AckSenderOptions {
  worker: string;
  incarnation: string;
  pool: string;
  topic: string;
  /** Acknowledgements to one router and slot are gathered at most so long. */
  coalesceMs: number;
  codec: RecordCodec<DispatchAck>;
  clock: Clock;
  load(): WorkerLoad;
  produce(record: OutboundRecord): void;
}

interface Pending {
  router: string;
  ackPartition: number;
  slot: number;
  completed: number[];
  sojournMs: number[];
  lastSequenceSeen: number;
}

/**
 * Tells each router what of its dispatches ended, and how long this worker's queue is. Gathered for at most `coalesceMs` per router
 * and slot. A lost acknowledgement costs the router a credit until the dispatch's budget is over, nothing else.
 */
export class AckSender {
  readonly #options: AckSenderOptions;
  readonly #pending = new Map<string, Pending>();
  #scheduled = false;

  constructor(options: AckSenderOptions) {
    this.#options = options;
  }

  arrived(delivery: Delivery<Dispatch>): void {
    const dispatch = delivery.value;
    if (dispatch.ackPartition < 0) return;
    const pending = this.#of(delivery);
    if (dispatch.sequence > pending.lastSequenceSeen) pending.lastSequenceSeen = dispatch.sequence;
  }

  completed(delivery: Delivery<Dispatch>): void {
    const dispatch = delivery.value;
    if (dispatch.ackPartition < 0) return;
    const pending = this.#of(delivery);
    pending.completed.push(dispatch.sequence);
    pending.sojournMs.push(this.#options.clock.monotonicMs() - delivery.receivedAtMs);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.after(this.#options.coalesceMs, () => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    const load = this.#options.load();
    for (const [key, pending] of this.#pending) {
      if (pending.completed.length === 0) continue;
      this.#send(pending, load);
      this.#pending.delete(key);
    }
  }

  #of(delivery: Delivery<Dispatch>): Pending {
    const { router, ackPartition } = delivery.value;
    const slot = delivery.record.partition;
    const key = `${router} ${slot}`;
    const known = this.#pending.get(key);
    if (known !== undefined) return known;
    const pending: Pending = {
      router,
      ackPartition,
      slot,
      completed: [],
      sojournMs: [],
      lastSequenceSeen: -1,
    };
    this.#pending.set(key, pending);
    return pending;
  }

  #send(pending: Pending, load: WorkerLoad): void {
    const { worker, incarnation, pool, topic, codec, clock } = this.#options;
    const ack = makeDispatchAck({
      router: pending.router,
      worker,
      incarnation,
      pool,
      slot: pending.slot,
      completed: pending.completed,
      sojournMs: pending.sojournMs,
      serviceMs: load.serviceMs,
      lastSequenceSeen: pending.lastSequenceSeen,
      queuedPredictedMs: load.queuedPredictedMs,
      enqueuedPredictedMs: load.enqueuedPredictedMs,
      completedPredictedMs: load.completedPredictedMs,
      busyMs: load.busyMs,
      snapshotMs: clock.monotonicMs(),
      batchRequests: load.batchRequests,
    });
    this.#options.produce({
      topic,
      partition: pending.ackPartition,
      key: Buffer.from(pending.router),
      value: codec.encode(ack),
    });
  }
}
