import { MillraceError } from '../../core/errors.ts';
import type { OnStored, OutboundRecord } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { backoffMs, isPowerOfTwo, TIMERS } from './backoff.ts';
import type { KafkaClient, SendOutcome } from './client.ts';
import { Outbox, type OutboxEntry } from './outbox.ts';
import { PartitionTable } from './partition-table.ts';
import { SendLane } from './send-lane.ts';
import type { TopicCatalog } from './topic-catalog.ts';

/** No broker takes a request so large by default (socket.request.max.bytes is 100 MiB): it would be cut off, again and again. */
const RECORD_BYTES_MAX = 64 * 2 ** 20;
const DELAY_FIRST_MS = 50;
const DELAY_MOST_MS = 1_000;

export interface SendQueueOptions {
  client: Pick<KafkaClient, 'send' | 'resetSending'>;
  catalog: TopicCatalog;
  logger: Logger;
  /** Counts attempts that have to be made again. */
  onRetry(): void;
}

/**
 * Everything that waits to be stored. Records queue per partition, and the partitions of one broker share a lane with one request in flight:
 * what gathers meanwhile is the next batch. A partition has records in at most one request, so its order holds through every retry, and a
 * partition in trouble waits by itself.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #outboxes = new PartitionTable<Outbox>();
  readonly #lanes = new Map<number, SendLane>();
  #waiting = 0;
  #closed = false;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  produce(record: OutboundRecord, onStored?: OnStored): Promise<void> {
    if (this.#closed) return Promise.reject(closed());
    const bytes = sizeOf(record);
    if (bytes > RECORD_BYTES_MAX) return Promise.reject(tooLarge(record, undefined));
    let outbox = this.#outboxes.get(record.topic, record.partition);
    if (outbox === undefined) {
      outbox = new Outbox(record.topic, record.partition);
      this.#outboxes.set(record.topic, record.partition, outbox);
    }
    this.#waiting++;
    const stored = outbox.push(record, bytes, onStored);
    if (outbox.state === 'idle') this.#route(outbox);
    return stored;
  }

  /** Waits until everything is stored, at most `timeoutMs`; what is still waiting then is rejected, and so is what comes later. */
  async close(timeoutMs: number): Promise<void> {
    if (this.#waiting > 0) {
      this.#idle ??= Promise.withResolvers<void>();
      await within(TIMERS, this.#idle.promise, timeoutMs, undefined);
    }
    this.#closed = true;
    for (const lane of this.#lanes.values()) lane.close();
    for (const outbox of this.#outboxes.values()) this.#reject(outbox.clear(), closed());
  }

  /** A partition stays in its lane while it has records there, so a new leader cannot overtake the old one. */
  #route(outbox: Outbox): void {
    const leader = this.#options.catalog.leaderOf(outbox.topic, outbox.partition);
    if (leader === undefined || leader < 0) void this.#find(outbox);
    else this.#laneOf(leader).add(outbox);
  }

  async #find(outbox: Outbox): Promise<void> {
    outbox.state = 'waiting';
    try {
      const leader = await this.#options.catalog.findLeader(
        outbox.topic,
        outbox.partition,
        () => !this.#closed,
      );
      if (!this.#closed) this.#laneOf(leader).add(outbox);
    } catch (error) {
      outbox.state = 'idle';
      this.#reject(outbox.clear(), this.#closed ? closed() : error);
    }
  }

  async #reroute(outboxes: readonly Outbox[]): Promise<void> {
    const topics = new Set(outboxes.map(({ topic }) => topic));
    await Promise.allSettled([...topics].map((topic) => this.#options.catalog.refresh(topic)));
    if (this.#closed) return;
    for (const outbox of outboxes) this.#route(outbox);
  }

  #laneOf(leader: number): SendLane {
    let lane = this.#lanes.get(leader);
    if (lane === undefined) {
      lane = new SendLane({
        ...this.#options,
        leader,
        settle: (outbox, outcome) => this.#settle(outbox, outcome),
        reroute: (outboxes) => this.#reroute(outboxes),
      });
      this.#lanes.set(leader, lane);
    }
    return lane;
  }

  #settle(outbox: Outbox, outcome: SendOutcome): void {
    switch (outcome.status) {
      case 'stored':
        outbox.failures = 0;
        this.#resolve(outbox.stored(), outcome.baseOffset);
        break;
      case 'too-large':
      case 'invalid':
        this.#refuse(outbox, outcome.status, outcome.error);
        break;
      case 'delayed':
        outbox.unsent();
        this.#delay(outbox, outcome.error);
        return;
      default:
        outcome satisfies never;
    }
    if (outbox.isEmpty) outbox.state = 'idle';
    else this.#route(outbox);
  }

  /** One record can spoil a batch: it is looked for by halves, and rejected alone. */
  #refuse(outbox: Outbox, status: 'too-large' | 'invalid', error: unknown): void {
    if (outbox.narrow()) return;
    const [entry] = outbox.stored();
    if (entry === undefined) return;
    const reason =
      status === 'too-large'
        ? tooLarge(entry.record, error)
        : new MillraceError(
            'POISON',
            `The broker refuses a record for ${outbox.topic}/${outbox.partition} for good`,
            { cause: error },
          );
    this.#reject([entry], reason);
  }

  #delay(outbox: Outbox, error: unknown): void {
    const { onRetry, logger, catalog } = this.#options;
    outbox.state = 'waiting';
    const waitMs = backoffMs(outbox.failures++, DELAY_FIRST_MS, DELAY_MOST_MS);
    onRetry();
    if (isPowerOfTwo(outbox.failures)) {
      const { topic, partition, failures } = outbox;
      logger.warn({ error, topic, partition, failures }, 'the broker refuses records for now; they wait');
    }
    const again = () => {
      if (!this.#closed) this.#route(outbox);
    };
    setTimeout(() => catalog.refresh(outbox.topic).then(again, again), waitMs);
  }

  /** The records of a batch lie one after the other. */
  #resolve(entries: readonly OutboxEntry[], baseOffset: number): void {
    for (const [index, { resolve, onStored }] of entries.entries()) {
      if (baseOffset >= 0) onStored?.(baseOffset + index);
      resolve();
    }
    this.#settled(entries.length);
  }

  #reject(entries: readonly OutboxEntry[], error: unknown): void {
    for (const entry of entries) entry.reject(error);
    this.#settled(entries.length);
  }

  #settled(count: number): void {
    this.#waiting -= count;
    if (this.#waiting === 0) this.#idle?.resolve();
  }
}

/** Bytes of a record as it travels, but for some tens of bytes of framing. */
function sizeOf({ key, value, headers }: OutboundRecord): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0);
  if (headers !== undefined) {
    for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  }
  return bytes;
}

function tooLarge(record: OutboundRecord, cause: unknown): MillraceError {
  return new MillraceError(
    'TOO_LARGE',
    `A record for ${record.topic}/${record.partition} is larger than the topic takes`,
    {
      value: `${sizeOf(record)} bytes`,
      advice: "Send less, or raise the topic's max.message.bytes.",
      cause,
    },
  );
}

function closed(): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', 'The bus is closed');
}
