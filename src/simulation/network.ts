import type { MemoryConnection } from '../adapters/memory/bus.ts';
import type { Clock } from '../ports/clock.ts';
import type {
  InboundRecord,
  MessageBus,
  OutboundRecord,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from '../ports/message-bus.ts';

/** How long a host's messages are under way. All that one host sends takes as long, so that its order stays. */
export interface NetworkDelays {
  /** From `produce` to the broker. */
  thereMs: number;
  /** From the broker's answer to the promise. */
  backMs: number;
  /** From an acknowledgement to the commit. */
  commitMs: number;
}

/**
 * The memory bus behind a network: a process that dies may have sent what was not stored yet, stored what it does not know to be stored, and done
 * what is not committed.
 */
export function networkedBus(bus: MemoryConnection, clock: Clock, delays: NetworkDelays): MessageBus {
  const after = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      clock.after(delayMs, resolve);
    });
  const underWay = new Set<Promise<void>>();
  const send = async (record: OutboundRecord): Promise<void> => {
    if (delays.thereMs > 0) await after(delays.thereMs);
    await bus.produce(record);
  };
  return {
    admin: bus.admin,
    partitionCount: (topic) => bus.partitionCount(topic),
    read: (options, onRecords) => bus.read(options, onRecords),
    subscribe: (options, subscriber) => subscribeDelayed(bus, clock, delays.commitMs, options, subscriber),
    async close() {
      // A client sends what it was given before it closes: a last heartbeat is waited for by nobody else.
      await Promise.allSettled(underWay);
      await bus.close();
    },
    async produce(record) {
      const sending = send(record);
      underWay.add(sending);
      const arrived = (): void => void underWay.delete(sending);
      sending.then(arrived, arrived);
      await sending;
      if (delays.backMs > 0) await after(delays.backMs);
    },
  };
}

async function subscribeDelayed(
  bus: MemoryConnection,
  clock: Clock,
  commitMs: number,
  options: SubscribeOptions,
  subscriber: Subscriber,
): Promise<Subscription> {
  const pending = new Set<InboundRecord>();
  let subscription: Subscription | undefined;
  const commit = (record: InboundRecord): void => {
    if (pending.delete(record)) subscription?.acknowledge(record);
  };
  subscription = await bus.subscribe(options, {
    ...subscriber,
    onRecords: (records) => subscriber.onRecords(records),
    async onRevoked(partitions) {
      await subscriber.onRevoked?.(partitions);
      // Who lets go of a partition commits first.
      for (const record of [...pending]) commit(record);
    },
  });
  const inner = subscription;
  return {
    assigned: () => inner.assigned(),
    sinceLastFetchMs: () => inner.sinceLastFetchMs(),
    close: () => inner.close(),
    acknowledge(record) {
      if (commitMs === 0) {
        inner.acknowledge(record);
        return;
      }
      pending.add(record);
      clock.after(commitMs, () => commit(record));
    },
  };
}
