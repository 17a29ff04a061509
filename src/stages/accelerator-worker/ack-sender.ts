import type { RecordCodec } from '../../contracts/codec.ts';
import { type Dispatch, type DispatchAck, makeDispatchAck } from '../../contracts/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OutboundRecord } from '../../ports/message-bus.ts';
import type { Delivery } from '../run-stage.ts';
import type { WorkerLoad } from './load-meter.ts';

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
  /** Calls `make` at once: what it encodes is emptied afterwards. */
  produce(topic: string, make: () => Omit<OutboundRecord, 'topic'>): void;
}

/** A router that dispatched nothing to a slot for so long leaves its share of the batch to the others. */
const HEARD_MS = 5_000;

/** A router with dispatches on a slot of this worker. */
interface Correspondent {
  router: string;
  ackPartition: number;
  slot: number;
  /** Its dispatches that arrived and did not end. */
  held: number;
  /** What ended since the last acknowledgement. */
  completed: number[];
  sojournMs: number[];
  lastSequenceSeen: number;
}

/**
 * Tells each router what of its dispatches ended, and how long this worker's queue is. Gathered for at most `coalesceMs` per router
 * and slot. A lost acknowledgement costs the router a credit until the dispatch's budget is over, nothing else. A router that has nothing
 * here any more is forgotten: routers come and go, each with a new name.
 */
export class AckSender {
  readonly #options: AckSenderOptions;
  /** By slot, then router. */
  readonly #correspondents = new Map<number, Map<string, Correspondent>>();
  /** By slot: when each router's last dispatch came. */
  readonly #heard = new Map<number, Map<string, number>>();
  #scheduled = false;

  constructor(options: AckSenderOptions) {
    this.#options = options;
  }

  arrived(delivery: Delivery<Dispatch>): void {
    const dispatch = delivery.value;
    if (dispatch.ackPartition < 0) return;
    const router = this.#of(delivery);
    this.#hear(router);
    router.held += 1;
    if (dispatch.sequence > router.lastSequenceSeen) router.lastSequenceSeen = dispatch.sequence;
  }

  completed(delivery: Delivery<Dispatch>): void {
    const dispatch = delivery.value;
    if (dispatch.ackPartition < 0) return;
    const router = this.#of(delivery);
    router.held -= 1;
    router.completed.push(dispatch.sequence);
    router.sojournMs.push(this.#options.clock.monotonicMs() - delivery.receivedAtMs);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.after(this.#options.coalesceMs, () => {
      this.#scheduled = false;
      this.flush();
    });
  }

  /** Its slot went away before it ended: whoever owns the slot next acknowledges it. */
  abandoned(delivery: Delivery<Dispatch>): void {
    if (delivery.value.ackPartition < 0) return;
    const router = this.#of(delivery);
    router.held -= 1;
    this.#forgetIfDone(router);
  }

  /** Routers that it knows of, on all slots together: with dispatches here, or with one of late. */
  get known(): number {
    const sizes = [...this.#heard.values(), ...this.#correspondents.values()].map(({ size }) => size);
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  flush(): void {
    const load = this.#options.load();
    for (const router of [...this.#correspondents.values()].flatMap((routers) => [...routers.values()])) {
      if (router.completed.length === 0) continue;
      this.#send(router, load);
      router.completed = [];
      router.sojournMs = [];
      this.#forgetIfDone(router);
    }
  }

  #of(delivery: Delivery<Dispatch>): Correspondent {
    const { router, ackPartition } = delivery.value;
    const slot = delivery.record.partition;
    let routers = this.#correspondents.get(slot);
    if (routers === undefined) {
      routers = new Map();
      this.#correspondents.set(slot, routers);
    }
    const known = routers.get(router);
    if (known !== undefined) return known;
    const fresh: Correspondent = {
      router,
      ackPartition,
      slot,
      held: 0,
      completed: [],
      sojournMs: [],
      lastSequenceSeen: -1,
    };
    routers.set(router, fresh);
    return fresh;
  }

  #hear({ slot, router }: Correspondent): void {
    let routers = this.#heard.get(slot);
    if (routers === undefined) {
      routers = new Map();
      this.#heard.set(slot, routers);
    }
    // Behind all others: the order is that of the last dispatches.
    routers.delete(router);
    routers.set(router, this.#options.clock.monotonicMs());
    // Here as well: a slot whose dispatches all end elsewhere never has an acknowledgement to send.
    this.#forgetSilent(routers);
  }

  #forgetSilent(routers: Map<string, number>): void {
    const sinceMs = this.#options.clock.monotonicMs() - HEARD_MS;
    for (const [router, atMs] of routers) {
      if (atMs >= sinceMs) break;
      routers.delete(router);
    }
  }

  /** How many routers dispatched to the slot of late, at least the one that asks. */
  #routersOf(slot: number): number {
    const routers = this.#heard.get(slot);
    if (routers === undefined) return 1;
    this.#forgetSilent(routers);
    return Math.max(1, routers.size);
  }

  #forgetIfDone({ router, slot, held, completed }: Correspondent): void {
    if (held <= 0 && completed.length === 0) this.#correspondents.get(slot)?.delete(router);
  }

  #send(correspondent: Correspondent, load: WorkerLoad): void {
    const { worker, incarnation, pool, topic, codec, clock } = this.#options;
    const ack = makeDispatchAck({
      router: correspondent.router,
      worker,
      incarnation,
      pool,
      slot: correspondent.slot,
      completed: correspondent.completed,
      sojournMs: correspondent.sojournMs,
      serviceMs: load.serviceMs,
      lastSequenceSeen: correspondent.lastSequenceSeen,
      queuedPredictedMs: load.queuedPredictedMs,
      enqueuedPredictedMs: load.enqueuedPredictedMs,
      completedPredictedMs: load.completedPredictedMs,
      busyMs: load.busyMs,
      snapshotMs: clock.monotonicMs(),
      batchRequests: load.batchRequests,
      routers: this.#routersOf(correspondent.slot),
    });
    this.#options.produce(topic, () => ({
      partition: correspondent.ackPartition,
      key: Buffer.from(correspondent.router),
      value: codec.encode(ack),
      headers: codec.headers,
    }));
  }
}
