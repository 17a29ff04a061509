import { MillraceError } from '../../src/core/errors.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { ControlStore, Lease } from '../../src/ports/control-store.ts';
import type {
  InboundRecord,
  MessageBus,
  OutboundRecord,
  Reader,
  SubscribeOptions,
  Subscriber,
  Subscription,
  TopicPartition,
} from '../../src/ports/message-bus.ts';

/** What is wrong with one host's ways to the broker and the store; it changes as the run goes on. */
export interface Trouble {
  /** Longest delay of deliveries, ms; 0 for none. */
  delayMs: number;
  /** Every so many-th record that it produces is stored twice; 0 for none. */
  storedTwiceEvery: number;
  /** How many deliveries are still to come again. */
  deliverAgain: number;
  isStoreCut: boolean;
}

export function noTrouble(): Trouble {
  return { delayMs: 0, storedTwiceEvery: 0, deliverAgain: 0, isStoreCut: false };
}

/** A partition's share of the delay: another one each, so that they overtake each other. */
function delayOf({ delayMs }: Trouble, { partition }: TopicPartition): number {
  return delayMs === 0 ? 0 : (delayMs * (1 + (partition % 3))) / 3;
}

const placeOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;

/** Hands records on later, those of a partition in their order; without a delay and with none waiting, at once. */
class Delays {
  readonly #clock: Clock;
  readonly #trouble: Trouble;
  readonly #onRecords: (records: readonly InboundRecord[]) => void;
  /** When the last records of a partition are due. */
  readonly #dueMs = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock, trouble: Trouble, onRecords: (records: readonly InboundRecord[]) => void) {
    this.#clock = clock;
    this.#trouble = trouble;
    this.#onRecords = onRecords;
  }

  take(records: readonly InboundRecord[]): void {
    const [first] = records;
    if (first === undefined) return;
    const place = placeOf(first);
    const nowMs = this.#clock.monotonicMs();
    const dueMs = Math.max(nowMs + delayOf(this.#trouble, first), this.#dueMs.get(place) ?? 0);
    const waiting = this.#waiting.get(place) ?? new Set();
    if (dueMs <= nowMs && waiting.size === 0) {
      this.#onRecords(records);
      return;
    }
    this.#dueMs.set(place, dueMs);
    this.#waiting.set(place, waiting);
    const cancel = this.#clock.after(dueMs - nowMs, () => {
      waiting.delete(cancel);
      this.#onRecords(records);
    });
    waiting.add(cancel);
  }

  /** The partitions went away: what is under way to this host never arrives. */
  forget(partitions: readonly TopicPartition[]): void {
    for (const place of partitions.map(placeOf)) {
      for (const cancel of this.#waiting.get(place) ?? []) cancel();
      this.#waiting.delete(place);
      this.#dueMs.delete(place);
    }
  }

  forgetAll(): void {
    for (const waiting of this.#waiting.values()) for (const cancel of waiting) cancel();
    this.#waiting.clear();
  }

  get isEmpty(): boolean {
    return [...this.#waiting.values()].every((waiting) => waiting.size === 0);
  }
}

/** The bus as a host in trouble has it. */
export function troubledBus(bus: MessageBus, clock: Clock, trouble: Trouble): MessageBus {
  let produced = 0;
  return {
    admin: bus.admin,
    partitionCount: (topic) => bus.partitionCount(topic),
    close: () => bus.close(),
    subscribe: (options, subscriber) => subscribeInTrouble(bus, clock, trouble, options, subscriber),
    async read(options, onRecords): Promise<Reader> {
      const delays = new Delays(clock, trouble, onRecords);
      const reader = await bus.read(options, (records) => delays.take(records));
      return { ...reader, caughtUp: caughtUp(reader, delays, clock), close: () => closed(reader, delays) };
    },
    async produce(record: OutboundRecord) {
      produced += 1;
      const isTwice = trouble.storedTwiceEvery > 0 && produced % trouble.storedTwiceEvery === 0;
      const stored = bus.produce(record);
      if (isTwice) bus.produce(record).catch(() => undefined);
      await stored;
    },
  };
}

const LOOK_MS = 5;

async function caughtUp(reader: Reader, delays: Delays, clock: Clock): Promise<void> {
  await reader.caughtUp;
  while (!delays.isEmpty) await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
}

async function closed(reader: Reader, delays: Delays): Promise<void> {
  delays.forgetAll();
  await reader.close();
}

function subscribeInTrouble(
  bus: MessageBus,
  clock: Clock,
  trouble: Trouble,
  options: SubscribeOptions,
  subscriber: Subscriber,
): Promise<Subscription> {
  const delays = new Delays(clock, trouble, (records) => subscriber.onRecords(records));
  return bus.subscribe(options, {
    ...subscriber,
    onRecords(records) {
      delays.take(records);
      if (trouble.deliverAgain === 0) return;
      trouble.deliverAgain -= 1;
      throw new Error('the connection broke right after the records had come');
    },
    async onRevoked(partitions) {
      delays.forget(partitions);
      await subscriber.onRevoked?.(partitions);
    },
    onLost(partitions) {
      delays.forget(partitions);
      subscriber.onLost?.(partitions);
    },
  });
}

/** The store as a host in trouble has it: calls fail, also those that the store has carried out, and hints are lost. */
export function troubledStore(store: ControlStore, trouble: Trouble): ControlStore {
  const check = (): void => {
    if (trouble.isStoreCut) throw new MillraceError('STORE_UNAVAILABLE', 'the host is cut off the store');
  };
  const through = async <T>(call: () => Promise<T>): Promise<T> => {
    check();
    const answer = await call();
    check();
    return answer;
  };
  const leaseOf = (lease: Lease): Lease => ({
    name: lease.name,
    holder: lease.holder,
    renew: () => through(() => lease.renew()),
    release: () => through(() => lease.release()),
  });
  return {
    readPointer: (scope) => through(() => store.readPointer(scope)),
    writePointer: (scope, pointer) => through(() => store.writePointer(scope, pointer)),
    putDocument: (digest, bytes) => through(() => store.putDocument(digest, bytes)),
    readDocument: (digest) => through(() => store.readDocument(digest)),
    hasDocument: (digest) => through(() => store.hasDocument(digest)),
    putEnvelope: (digest, bytes) => through(() => store.putEnvelope(digest, bytes)),
    readEnvelope: (digest) => through(() => store.readEnvelope(digest)),
    putRevocations: (bytes) => through(() => store.putRevocations(bytes)),
    readRevocations: () => through(() => store.readRevocations()),
    watch: (scope, onHint) =>
      through(() =>
        store.watch(scope, () => {
          if (!trouble.isStoreCut) onHint();
        }),
      ),
    async acquireLease(names, holder, ttlMs) {
      const lease = await through(() => store.acquireLease(names, holder, ttlMs));
      return lease && leaseOf(lease);
    },
    report: (scope, member, text, ttlMs) => through(() => store.report(scope, member, text, ttlMs)),
    readReports: (scope) => through(() => store.readReports(scope)),
    close: () => store.close(),
  };
}
