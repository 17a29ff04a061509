import { MillraceError } from '../../core/errors.ts';
import type { BroadcastOptions, InboundRecord, Reader, TopicPartition } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { backoffMs } from './backoff.ts';
import { type Claims, NO_CLAIMS } from './claims.ts';
import type { Joined, KafkaClient, Session, SessionListener } from './client.ts';
import { PartitionTable } from './partition-table.ts';
import { SessionKeeper } from './session-keeper.ts';
import type { OutOfRangePolicy } from './start-position.ts';
import { findStarts } from './start-search.ts';
import { noteUnreadable } from './unreadable.ts';

export interface ReaderContext {
  client: KafkaClient;
  logger: Logger;
  /** Some clients need a group to read at all: one of its own for each session, in which nobody else is and nobody else was. */
  newGroup(): string;
  sessionTimeoutMs: number;
  staleMs: number;
  outOfRange: OutOfRangePolicy;
  assignment: number;
  onRestart(): void;
  onOutOfRange(): void;
  /** So many records lie in batches that are refused. */
  onUnreadable(offsets: number): void;
  onClosed(): void;
}

const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;

interface Place extends TopicPartition {
  position: number;
  /** The end of the partition when reading began. */
  readonly end: number;
  isCaughtUp: boolean;
}

/** Reads partitions without commits. It keeps its positions itself, so a new session goes on where the last one stopped. */
export class PartitionReader implements Reader, SessionListener {
  readonly #context: ReaderContext;
  readonly #options: BroadcastOptions;
  readonly #onRecords: (records: readonly InboundRecord[]) => void;
  readonly #keeper: SessionKeeper;
  readonly #places = new PartitionTable<Place>();
  readonly #caughtUp = Promise.withResolvers<void>();
  #behind = 0;
  #session: Session | undefined;
  #paused = false;
  #closed = false;

  constructor(
    context: ReaderContext,
    options: BroadcastOptions,
    onRecords: (records: readonly InboundRecord[]) => void,
  ) {
    this.#caughtUp.promise.catch(() => undefined);
    this.#context = context;
    this.#options = options;
    this.#onRecords = onRecords;
    const { client, newGroup, sessionTimeoutMs, staleMs, logger } = context;
    const { topics, partitions } = options;
    const membership =
      partitions === undefined ? { kind: 'reader' as const } : { kind: 'reader' as const, partitions };
    this.#keeper = new SessionKeeper({
      open: () =>
        client.openSession(
          { group: newGroup(), topics, membership, sessionTimeoutMs, rebalanceTimeoutMs: sessionTimeoutMs },
          this,
        ),
      onOver: (error) => this.#onSessionOver(error),
      staleMs,
      logger,
    });
  }

  get caughtUp(): Promise<void> {
    return this.#caughtUp.promise;
  }

  /** Positions are fixed before anything else, so that nothing appended after this resolved can be missed. */
  async start(): Promise<void> {
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        for (const topic of this.#options.topics) await this.#findPlaces(topic);
        break;
      } catch (error) {
        this.#context.logger.warn({ error }, 'looking for where to start reading failed');
        await new Promise((resolve) =>
          setTimeout(resolve, backoffMs(attempt, RETRY_FIRST_MS, RETRY_MOST_MS)),
        );
      }
    }
    if (this.#behind === 0) this.#caughtUp.resolve();
    await this.#keeper.start();
  }

  async #findPlaces(topic: string): Promise<void> {
    for (const { partition, low, high } of await this.#context.client.watermarks(topic)) {
      if (!this.#wants(partition) || this.#places.get(topic, partition) !== undefined) continue;
      const position = this.#options.startAt === 'earliest' ? low : high;
      const isCaughtUp = position >= high;
      this.#places.set(topic, partition, { topic, partition, position, end: high, isCaughtUp });
      if (!isCaughtUp) this.#behind++;
    }
  }

  sinceLastFetchMs(): number {
    return this.#keeper.sinceContactMs();
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    for (const place of this.#places.values()) this.#session?.pause(place);
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    for (const place of this.#places.values()) this.#session?.resume(place);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#caughtUp.reject(new MillraceError('CLOSED', 'The reader was closed before it had caught up'));
    await this.#keeper.close();
    this.#context.onClosed();
  }

  // What sessions call

  claims(): Claims {
    return NO_CLAIMS;
  }

  onJoined(session: Session, { partitions }: Joined): void {
    this.#session = session;
    for (const { topic, partition } of partitions) {
      // A partition that did not exist when reading began is read from its first record on.
      const place = this.#places.get(topic, partition) ?? {
        topic,
        partition,
        position: 0,
        end: 0,
        isCaughtUp: true,
      };
      this.#places.set(topic, partition, place);
      session.seek(place, place.position);
      if (this.#paused) session.pause(place);
      else session.resume(place);
    }
  }

  admit({ topic, partition }: TopicPartition, offset: number): number | undefined {
    const isNext = !this.#closed && this.#places.get(topic, partition)?.position === offset;
    return isNext ? this.#context.assignment : undefined;
  }

  positionOf({ topic, partition }: TopicPartition): number | undefined {
    return this.#places.get(topic, partition)?.position;
  }

  onFetched({ topic, partition }: TopicPartition, fetched: InboundRecord[], position: number): void {
    const place = this.#places.get(topic, partition);
    if (place === undefined) return;
    this.#moveTo(place, position);
    const readable = noteUnreadable(fetched, this.#context);
    const records = this.#options.unreadable === 'delivered' ? fetched : readable;
    if (records.length > 0) {
      try {
        this.#onRecords(records);
      } catch (error) {
        this.#context.logger.error({ error, topic, partition }, 'a reader threw');
      }
    }
    if (this.#behind === 0) this.#caughtUp.resolve();
  }

  onOutOfRange({ topic, partition }: TopicPartition): void {
    const place = this.#places.get(topic, partition);
    if (place !== undefined) void this.#findAgain(place);
  }

  onCrashed(session: Session, error: unknown): void {
    this.#keeper.over(session, error);
  }

  #wants(partition: number): boolean {
    return this.#options.partitions?.includes(partition) ?? true;
  }

  #moveTo(place: Place, position: number): void {
    // Backwards: it is a new log, and what lay in the old one is gone.
    const isBehind = position >= place.position && position < place.end;
    place.position = position;
    if (place.isCaughtUp || isBehind) return;
    place.isCaughtUp = true;
    this.#behind--;
  }

  async #findAgain(place: Place): Promise<void> {
    const { client, outOfRange, logger, onOutOfRange } = this.#context;
    const { position } = place;
    const [found] = await findStarts({
      client,
      startAt: 'earliest',
      outOfRange,
      logger,
      partitions: [place],
      position,
      stillWanted: (places) => (this.#closed || place.position !== position ? [] : places),
      onError: (error) => logger.warn({ error }, 'looking for where to read on failed'),
      onOutOfRange,
    });
    if (found === undefined) return;
    this.#moveTo(place, found.start.offset);
    this.#session?.seek(place, place.position);
    if (!this.#paused) this.#session?.resume(place);
    if (this.#behind === 0) this.#caughtUp.resolve();
  }

  #onSessionOver(error: unknown): void {
    this.#session = undefined;
    this.#context.logger.warn({ error }, 'a reader stopped');
    this.#context.onRestart();
  }
}
