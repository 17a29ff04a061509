import { MillraceError } from '../../core/errors.ts';
import type { Cancel } from '../../ports/clock.ts';
import type {
  BroadcastOptions,
  BusAdmin,
  BusOptions,
  InboundRecord,
  MessageBus,
  OnStored,
  OutboundRecord,
  Reader,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from '../../ports/message-bus.ts';
import { within } from '../../ports/within.ts';
import { brokerAdmin } from './admin.ts';
import type { Broker, BrokerClient } from './broker.ts';
import type { CursorSurroundings } from './cursor.ts';
import type { Group } from './group.ts';
import { Link } from './link.ts';
import { Member } from './member.ts';
import { Outbox } from './outbox.ts';
import { BroadcastReader } from './reader.ts';
import type { Topic } from './topic.ts';

/** A client of the memory broker, with the faults that a client can suffer. */
export interface MemoryConnection extends MessageBus {
  /**
   * Ends the client as kill -9 would: nothing is delivered, stored or committed any more, promises that wait stay pending, and its
   * partitions go to others once its session has run out.
   */
  crash(): void;
  /** Cuts the client off the broker: what it sends waits, and after `sessionTimeoutMs` its partitions are lost to it. */
  disconnect(): void;
  reconnect(): void;
}

export class Connection implements MemoryConnection, BrokerClient {
  readonly admin: BusAdmin;
  readonly #broker: Broker;
  readonly #options: BusOptions;
  readonly #link: Link;
  readonly #outbox: Outbox;
  readonly #cursors: CursorSurroundings;
  readonly #members = new Map<Member, Group>();
  readonly #readers = new Set<BroadcastReader>();
  readonly #requests = new Set<(error: MillraceError) => void>();
  #connected = true;
  #cancelSession: Cancel | undefined;
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(broker: Broker, options: BusOptions, deliveryDelayMs: number) {
    this.#broker = broker;
    this.#options = options;
    this.#link = new Link(broker.clock, broker.running);
    this.#outbox = new Outbox(this.#link, (record) => broker.append(record));
    this.#cursors = { clock: broker.clock, link: this.#link, deliveryDelayMs };
    this.admin = brokerAdmin(broker, (action) => this.#request(action));
    broker.clients.add(this);
  }

  produce(record: OutboundRecord, onStored?: OnStored): Promise<void> {
    return this.#closed ? Promise.reject(closedError()) : this.#outbox.send(record, onStored);
  }

  partitionCount(topic: string): Promise<number> {
    return this.#request(() => this.#broker.topic(topic).partitions.length);
  }

  async subscribe(options: SubscribeOptions, subscriber: Subscriber): Promise<Subscription> {
    return this.#request(() => {
      this.#checkSubscription(options);
      const group = this.#broker.group(options.group);
      const member = new Member(options, subscriber, {
        ...this.#cursors,
        group,
        findTopic: (name) => this.#broker.findTopic(name),
        options: this.#options,
        left: () => this.#members.delete(member),
      });
      group.join(member);
      this.#members.set(member, group);
      return member;
    });
  }

  read(options: BroadcastOptions, onRecords: (records: readonly InboundRecord[]) => void): Promise<Reader> {
    return this.#request(() => {
      const reader = new BroadcastReader(options, onRecords, this.#cursors, this.#options.telemetry.logger);
      reader.start(options.topics.map((topic) => this.#broker.currentTopic(topic)));
      this.#readers.add(reader);
      return {
        caughtUp: reader.caughtUp,
        pause: () => reader.pause(),
        resume: () => reader.resume(),
        close: async () => {
          reader.stop();
          this.#readers.delete(reader);
        },
      };
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  crash(): void {
    this.#link.kill();
    for (const member of this.#members.keys()) member.kill();
    for (const reader of this.#readers) reader.stop();
    this.#startSession();
  }

  disconnect(): void {
    this.#connected = false;
    this.#link.cut();
    this.#startSession();
  }

  reconnect(): void {
    this.#connected = true;
    if (!this.#broker.running || this.#link.killed) return;
    this.#endSession();
    this.#link.mend();
  }

  brokerStopped(): void {
    this.#link.cut();
    this.#endSession();
  }

  brokerStarted(): void {
    if (this.#connected && !this.#link.killed) this.#link.mend();
    else this.#startSession();
  }

  topicGrew(topic: Topic): void {
    for (const reader of this.#readers) reader.topicGrew(topic);
  }

  topicAccepts(): void {
    this.#outbox.flushSoon();
  }

  #checkSubscription({ topics, slots }: SubscribeOptions): void {
    const found = topics.map((name) => this.#broker.topic(name));
    if (slots === undefined) return;
    const [topic] = found;
    if (topic === undefined || found.length > 1 || slots.length === 0) {
      throw new MillraceError('INVALID_CONFIG', 'Slots are partitions of one topic', {
        value: { topics, slots },
        allowed: 'exactly one topic and at least one slot',
      });
    }
    for (const slot of slots) topic.log(slot);
  }

  async #close(): Promise<void> {
    if (!this.#link.killed) {
      // What a subscription drains, it may still produce: so the outbox comes after them.
      await Promise.all([...this.#members.keys()].map((member) => member.close()));
      this.#closed = true;
      await within(this.#broker.clock, this.#outbox.empty(), this.#options.drainTimeoutMs, undefined);
    }
    this.#closed = true;
    this.#outbox.abandon();
    for (const reject of this.#requests) reject(closedError());
    for (const reader of this.#readers) reader.stop();
    if (this.#members.size === 0) this.#broker.clients.delete(this);
  }

  /** Runs an action at the broker and brings its answer back. */
  #request<T>(action: () => T): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      this.#requests.add(reject);
      this.#link.call(() => {
        this.#requests.delete(reject);
        try {
          if (this.#closing !== undefined) throw closedError();
          resolve(action());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** The broker waits a session's length for a client that it does not hear of, while it is running itself. */
  #startSession(): void {
    if (!this.#broker.running || this.#cancelSession !== undefined) return;
    this.#cancelSession = this.#broker.clock.after(this.#options.sessionTimeoutMs, () => {
      this.#cancelSession = undefined;
      for (const [member, group] of this.#members) group.expire(member);
      if (this.#link.killed) this.#broker.clients.delete(this);
    });
  }

  #endSession(): void {
    this.#cancelSession?.();
    this.#cancelSession = undefined;
  }
}

function closedError(): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', 'The bus is closed', { advice: 'Connect a new one.' });
}
