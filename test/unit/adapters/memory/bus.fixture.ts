import {
  type MemoryBroker,
  type MemoryConnection,
  memoryBroker,
} from '../../../../src/adapters/memory/bus.ts';
import { type SilentTelemetry, silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type {
  BusOptions,
  InboundRecord,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from '../../../../src/ports/message-bus.ts';
import { type VirtualClock, virtualClock } from '../../../../src/simulation/virtual-clock.ts';

export const SESSION_TIMEOUT_MS = 6_000;
export const DRAIN_TIMEOUT_MS = 1_000;

/** A memory broker in virtual time, with what tests do to it again and again. */
export class MemoryWorld {
  readonly clock: VirtualClock = virtualClock();
  readonly telemetry: SilentTelemetry = silentTelemetry();
  readonly broker: MemoryBroker;

  constructor(options: { deliveryDelayMs?: number; topicBytesMax?: number } = {}) {
    this.broker = memoryBroker({ clock: this.clock, ...options });
  }

  connect(options: Partial<BusOptions> = {}): MemoryConnection {
    return this.broker.connect({
      clientId: 'test',
      drainTimeoutMs: DRAIN_TIMEOUT_MS,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      telemetry: this.telemetry,
      ...options,
    });
  }

  /** Lets time go on until the promise has settled. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    promise.then(
      () => {
        settled = true;
      },
      () => {
        settled = true;
      },
    );
    if (!(await this.clock.runUntil(() => settled, 60_000)))
      throw new Error('the promise did not settle in a minute');
    return promise;
  }

  async createTopic(
    bus: MemoryConnection,
    partitions: number,
    config: Record<string, string> = {},
    name = 't',
  ) {
    await this.settle(bus.admin.createTopics([{ name, partitions, replication: 1, config }]));
    return name;
  }

  async produce(bus: MemoryConnection, partition: number, ...values: string[]): Promise<void> {
    await this.settle(
      Promise.all(
        values.map((value) =>
          bus.produce({ topic: 't', partition, key: Buffer.from(value), value: Buffer.from(value) }),
        ),
      ),
    );
  }

  /** Subscribes to `t`, and writes down what is called. */
  async subscribe(
    bus: MemoryConnection,
    options: Partial<SubscribeOptions> = {},
    hooks: Partial<Subscriber> = {},
  ): Promise<Member> {
    const member = new Member();
    const subscription = await this.settle(
      bus.subscribe(
        { group: 'g', topics: ['t'], startAt: 'earliest', ...options },
        {
          onRecords: (records) => member.records.push(...records),
          onAssigned: (places) => member.calls.push(`assigned ${places.map(({ partition }) => partition)}`),
          onRevoked: async (places) => {
            member.calls.push(`revoked ${places.map(({ partition }) => partition)}`);
          },
          onLost: (places) => member.calls.push(`lost ${places.map(({ partition }) => partition)}`),
          onError: (error) => member.errors.push(error),
          ...hooks,
        },
      ),
    );
    member.subscription = subscription;
    return member;
  }

  /** Values of everything that a partition keeps. */
  async kept(bus: MemoryConnection, partition?: number): Promise<string[]> {
    const records: InboundRecord[] = [];
    const partitions = partition === undefined ? {} : { partitions: [partition] };
    const reader = await this.settle(
      bus.read({ topics: ['t'], startAt: 'earliest', ...partitions }, (batch) => records.push(...batch)),
    );
    await this.settle(reader.caughtUp);
    await reader.close();
    return texts(records);
  }

  async committed(bus: MemoryConnection, group = 'g'): Promise<number[]> {
    return [...(await this.settle(bus.admin.committed(group, 't'))).values()];
  }
}

export class Member {
  readonly records: InboundRecord[] = [];
  readonly calls: string[] = [];
  readonly errors: unknown[] = [];
  #subscription: Subscription | undefined;

  get subscription(): Subscription {
    if (this.#subscription === undefined) throw new Error('subscribe has not resolved yet');
    return this.#subscription;
  }

  set subscription(subscription: Subscription) {
    this.#subscription = subscription;
  }

  values(): string[] {
    return texts(this.records);
  }

  acknowledgeAll(): void {
    for (const record of this.records) this.subscription.acknowledge(record);
  }
}

function texts(records: readonly InboundRecord[]): string[] {
  return records.map(({ value }) => value?.toString() ?? 'null');
}
