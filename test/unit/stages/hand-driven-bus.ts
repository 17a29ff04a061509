import type {
  BusAdmin,
  InboundRecord,
  MessageBus,
  OutboundRecord,
  Reader,
  SubscribeOptions,
  Subscriber,
  Subscription,
  TopicPartition,
} from '../../../src/ports/message-bus.ts';

/** A record that waits for the bus's answer. */
export interface Producing {
  readonly record: OutboundRecord;
  store(): void;
  refuse(error: unknown): void;
}

/** A bus that does what the test says, when the test says so: nothing is stored, assigned or taken away by itself. */
export class HandDrivenBus implements MessageBus {
  /** Everything produced, in order. */
  readonly producing: Producing[] = [];
  readonly acknowledged: InboundRecord[] = [];
  readonly owned: TopicPartition[] = [];
  closes = 0;
  #subscriber: Subscriber | undefined;
  #subscribed: () => void = () => {};
  #isHeldBack = false;

  /** From now on `subscribe` does not resolve until `letSubscribe`. */
  holdBackSubscribe(): void {
    this.#isHeldBack = true;
  }

  letSubscribe(): void {
    this.#subscribed();
  }

  deliver(...records: InboundRecord[]): void {
    this.#subscriber?.onRecords(records);
  }

  assign(...partitions: TopicPartition[]): void {
    this.owned.push(...partitions);
    this.#subscriber?.onAssigned?.(partitions);
  }

  revoke(...partitions: TopicPartition[]): Promise<void> {
    return this.#subscriber?.onRevoked?.(partitions) ?? Promise.resolve();
  }

  lose(...partitions: TopicPartition[]): void {
    this.#subscriber?.onLost?.(partitions);
  }

  fail(error: unknown): void {
    this.#subscriber?.onError?.(error);
  }

  produce(record: OutboundRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      this.producing.push({ record, store: resolve, refuse: reject });
    });
  }

  async partitionCount(): Promise<number> {
    return 4;
  }

  async subscribe(_options: SubscribeOptions, subscriber: Subscriber): Promise<Subscription> {
    this.#subscriber = subscriber;
    if (this.#isHeldBack) {
      await new Promise<void>((resolve) => {
        this.#subscribed = resolve;
      });
    }
    return {
      acknowledge: (record) => this.acknowledged.push(record),
      assigned: () => this.owned,
      sinceLastFetchMs: () => 0,
      close: async () => {
        this.closes += 1;
        await this.revoke(...this.owned);
      },
    };
  }

  async read(): Promise<Reader> {
    return {
      caughtUp: Promise.resolve(),
      pause: () => {},
      resume: () => {},
      close: async () => {},
    };
  }

  get admin(): BusAdmin {
    throw new Error('a hand-driven bus has no admin');
  }

  async close(): Promise<void> {}
}

/** Lets what promises set off run: nothing here takes real time. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
