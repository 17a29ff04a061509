import type { Clock } from '../../src/ports/clock.ts';
import type {
  BusOptions,
  InboundRecord,
  MessageBus,
  SubscribeOptions,
  Subscription,
  TopicPartition,
} from '../../src/ports/message-bus.ts';

/** What an adapter's test run provides to the suite. One factory serves one test; `close` ends everything it made. */
export interface BusFactory {
  /** A client of the one broker that this factory stands for. Options that are not given are the factory's choice. */
  connect(options?: Partial<BusOptions>): Promise<MessageBus>;
  /** Ends a client as kill -9 would: no leave, no commit, no callback. It cannot be used afterwards. */
  kill(bus: MessageBus): Promise<void>;
  /** Appends a record as a producer that is not millrace's may: its headers can be without a value. */
  produceForeign(
    topic: string,
    value: Buffer,
    headers: Readonly<Record<string, Buffer | null>>,
  ): Promise<void>;
  /** The time that the bus lives in. Callbacks wait by it; `settle`, `eventually` and `pass` are for the test's own course. */
  readonly clock: Clock;
  /** Awaits a promise of the bus; in virtual time the clock moves on meanwhile. */
  settle<T>(promise: Promise<T>): Promise<T>;
  /** Waits until `condition` holds, with a generous bound. @throws Error naming `what` did not happen. */
  eventually(condition: () => boolean, what: string): Promise<void>;
  /** Lets time pass, to see that something does not happen. */
  pass(ms: number): Promise<void>;
  /** How long the suite looks on where something must not happen: longer than what must happen usually takes. */
  readonly quietMs: number;
  /** Of the clients that `connect` makes, unless told otherwise. */
  readonly sessionTimeoutMs: number;
  close(): Promise<void>;
}

let serial = 0;

/** A name that no other test, process or run uses. */
export function uniqueName(kind: string): string {
  serial++;
  return `conformance.${kind}.${process.pid}.${Date.now().toString(36)}.${serial}`;
}

/** A subscriber that writes down what happens to it. */
export class Recorder {
  readonly bus: MessageBus;
  readonly records: InboundRecord[] = [];
  /** What each call of `onRecords` brought. */
  readonly batches: (readonly InboundRecord[])[] = [];
  readonly assigned: TopicPartition[][] = [];
  readonly revoked: TopicPartition[][] = [];
  readonly lost: TopicPartition[][] = [];
  readonly errors: unknown[] = [];
  /** Acknowledge at once whatever is delivered. */
  acknowledging: boolean;
  /** Throw at whatever is delivered, once it is noted. */
  throwing = false;
  /** Called when partitions are revoked; what it returns is waited for. */
  onRevoked: () => Promise<void> = async () => {};
  readonly #onOwnership: (owns: boolean) => void;
  #subscription: Subscription | undefined;

  private constructor(bus: MessageBus, acknowledging: boolean, onOwnership: (owns: boolean) => void) {
    this.bus = bus;
    this.acknowledging = acknowledging;
    this.#onOwnership = onOwnership;
  }

  static async subscribe(
    run: BusFactory,
    bus: MessageBus,
    options: SubscribeOptions,
    acknowledging: 'acknowledging' | 'holding',
    /** Called with true when partitions are assigned, with false when their drain is over. */
    onOwnership: (owns: boolean) => void = () => {},
  ): Promise<Recorder> {
    const recorder = new Recorder(bus, acknowledging === 'acknowledging', onOwnership);
    recorder.#subscription = await run.settle(
      bus.subscribe(options, {
        onRecords: (records) => recorder.#receive(records),
        onAssigned: (partitions) => {
          recorder.assigned.push([...partitions]);
          recorder.#onOwnership(true);
        },
        onRevoked: async (partitions) => {
          recorder.revoked.push([...partitions]);
          await recorder.onRevoked();
          recorder.#onOwnership(false);
        },
        onLost: (partitions) => recorder.lost.push([...partitions]),
        onError: (error) => recorder.errors.push(error),
      }),
    );
    // Some adapters deliver before the promise of `subscribe` has reached us.
    if (recorder.acknowledging)
      for (const record of recorder.records) recorder.subscription.acknowledge(record);
    return recorder;
  }

  get subscription(): Subscription {
    if (this.#subscription === undefined) throw new Error('subscribe has not resolved yet');
    return this.#subscription;
  }

  /** Values of the records of a partition (of all without one), as text, in the order of delivery. */
  values(partition?: number): string[] {
    const chosen = this.records.filter((record) => partition === undefined || record.partition === partition);
    return chosen.map(({ value }) => value?.toString() ?? 'null');
  }

  partitions(): number[] {
    return this.subscription
      .assigned()
      .map(({ partition }) => partition)
      .sort((a, b) => a - b);
  }

  acknowledge(...values: string[]): void {
    for (const record of this.records) {
      if (values.includes(record.value?.toString() ?? 'null')) this.subscription.acknowledge(record);
    }
  }

  #receive(records: readonly InboundRecord[]): void {
    this.batches.push(records);
    this.records.push(...records);
    if (this.throwing) throw new Error('the subscriber threw');
    if (!this.acknowledging) return;
    for (const record of records) this.#subscription?.acknowledge(record);
  }
}

/** Waits inside a callback of the bus. */
export function later(run: BusFactory, ms: number): Promise<void> {
  return new Promise((resolve) => {
    run.clock.after(ms, resolve);
  });
}

export async function createTopic(
  run: BusFactory,
  bus: MessageBus,
  partitions: number,
  config: Readonly<Record<string, string>> = {},
): Promise<string> {
  const name = uniqueName('topic');
  await run.settle(bus.admin.createTopics([{ name, partitions, replication: 1, config }]));
  return name;
}

/** Produces text values to one partition, all at once, and waits for them. */
export async function produceTexts(
  run: BusFactory,
  bus: MessageBus,
  topic: string,
  partition: number,
  values: readonly string[],
): Promise<void> {
  const produced = values.map((value) =>
    bus.produce({ topic, partition, key: Buffer.from(value), value: Buffer.from(value) }),
  );
  await run.settle(Promise.all(produced));
}

/** `prefix0`, `prefix1`, … */
export function texts(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`);
}

/** A committed offset; `nothing` where no record's end is committed: that may be -1, or the start. */
export type ExpectedOffset = number | 'nothing';

/** A coordinator that dies takes its group's commits with it until another has taken over and the group has joined anew. */
const COMMITTED_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 100;

/** Waits until the group has committed these offsets, one per partition. */
export async function eventuallyCommitted(
  run: BusFactory,
  bus: MessageBus,
  group: string,
  topic: string,
  expected: readonly ExpectedOffset[],
): Promise<void> {
  let offsets: number[] = [];
  for (let waitedMs = 0; waitedMs < COMMITTED_WITHIN_MS; waitedMs += LOOK_EVERY_MS) {
    const committed = await run.settle(bus.admin.committed(group, topic));
    offsets = expected.map((_, partition) => committed.get(partition) ?? -1);
    if (committed.size === expected.length && offsets.every((offset, i) => matches(offset, expected[i])))
      return;
    await run.pass(LOOK_EVERY_MS);
  }
  throw new Error(`the group committed ${offsets.join(', ')}, not ${expected.join(', ')}`);
}

function matches(offset: number, expected: ExpectedOffset | undefined): boolean {
  return expected === 'nothing' ? offset <= 0 : offset === expected;
}

/** The error that a promise rejects with. */
export async function rejection(run: BusFactory, promise: Promise<unknown>): Promise<unknown> {
  let rejected: { error: unknown } | undefined;
  await run.settle(
    promise.catch((error: unknown) => {
      rejected = { error };
    }),
  );
  if (rejected === undefined) throw new Error('the promise should have been rejected');
  return rejected.error;
}
