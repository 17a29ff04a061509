import type { BroadcastOptions, InboundRecord } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { Cursor, type CursorOutlet, type CursorSurroundings } from './cursor.ts';
import type { PartitionLog, StoredRecord } from './partition-log.ts';
import type { Topic } from './topic.ts';

type OnRecords = (records: readonly InboundRecord[]) => void;

/** Reads without a group, so no assignment ever ends: all its records carry this one. */
const READER_ASSIGNMENT = 0;

/** Reads partitions from a chosen end on, until it is closed. */
export class BroadcastReader {
  /** Resolves when what lay in the partitions at the start has been delivered; stays pending where it is stopped before. */
  readonly caughtUp: Promise<void>;
  readonly #options: BroadcastOptions;
  readonly #onRecords: OnRecords;
  readonly #surroundings: CursorSurroundings;
  readonly #logger: Logger;
  readonly #readings = new Map<PartitionLog, PartitionReading>();
  #behind = 0;
  #resolveCaughtUp: () => void = () => {};
  #paused = false;
  #stopped = false;

  constructor(
    options: BroadcastOptions,
    onRecords: OnRecords,
    surroundings: CursorSurroundings,
    logger: Logger,
  ) {
    this.#options = options;
    this.#onRecords = onRecords;
    this.#surroundings = surroundings;
    this.#logger = logger;
    this.caughtUp = new Promise((resolve) => {
      this.#resolveCaughtUp = resolve;
    });
  }

  /** Takes its places in the topics. @throws MillraceError BUS_UNAVAILABLE for a partition that does not exist. */
  start(topics: readonly Topic[]): void {
    const places = topics.flatMap((topic) =>
      [...(this.#options.partitions ?? topic.partitions.keys())].map((partition) => ({
        topic,
        partition,
        log: topic.log(partition),
      })),
    );
    const fromStart = this.#options.startAt === 'earliest';
    for (const { topic, partition, log } of places)
      this.#open(topic, partition, fromStart ? log.low : log.high);
    if (this.#behind === 0) this.#resolveCaughtUp();
  }

  /** Partitions that a topic got after the start are read from their first record on, unless partitions were chosen. */
  topicGrew(topic: Topic): void {
    if (this.#stopped || this.#options.partitions !== undefined || !this.#options.topics.includes(topic.name))
      return;
    topic.partitions.forEach((log, partition) => {
      if (!this.#readings.has(log)) this.#open(topic, partition, 0);
    });
  }

  pause(): void {
    for (const reading of this.#readings.values()) reading.pause();
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    for (const reading of this.#readings.values()) reading.resume();
  }

  stop(): void {
    this.#stopped = true;
    for (const reading of this.#readings.values()) reading.close();
    this.#readings.clear();
  }

  #open(topic: Topic, partition: number, start: number): void {
    const log = topic.log(partition);
    if (start < log.high) this.#behind++;
    const deliver = (stored: readonly StoredRecord[]): void => {
      const records = stored.map(({ offset, timestampMs, key, value, headers }): InboundRecord => {
        return {
          topic: topic.name,
          partition,
          offset,
          timestampMs,
          key,
          value,
          headers,
          assignment: READER_ASSIGNMENT,
        };
      });
      this.#deliver(records);
    };
    const reading = new PartitionReading(deliver, () => this.#oneCaughtUp());
    if (this.#paused) reading.pause();
    reading.open(log, start, this.#surroundings);
    this.#readings.set(log, reading);
  }

  #deliver(records: readonly InboundRecord[]): void {
    try {
      this.#onRecords(records);
    } catch (error) {
      this.#logger.error(
        { topics: this.#options.topics, error },
        'Whoever reads the records threw; they are passed over.',
      );
    }
  }

  #oneCaughtUp(): void {
    this.#behind--;
    if (this.#behind === 0) this.#resolveCaughtUp();
  }
}

/** One partition of a reader; knows when it has passed what lay there at the start. */
class PartitionReading implements CursorOutlet {
  readonly deliver: (records: readonly StoredRecord[]) => void;
  readonly #onCaughtUp: () => void;
  #cursor: Cursor | undefined;
  #goal: number | undefined;
  #paused = false;

  constructor(deliver: (records: readonly StoredRecord[]) => void, onCaughtUp: () => void) {
    this.deliver = deliver;
    this.#onCaughtUp = onCaughtUp;
  }

  open(log: PartitionLog, start: number, surroundings: CursorSurroundings): void {
    if (start < log.high) this.#goal = log.high;
    this.#cursor = new Cursor(log, start, this, surroundings);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#cursor?.wake();
  }

  close(): void {
    this.#cursor?.close();
    this.#goal = undefined;
  }

  roomRecords(): number {
    return this.#paused ? 0 : Infinity;
  }

  roomBytes(): number {
    return Infinity;
  }

  moved(): void {
    if (this.#goal === undefined || this.#cursor === undefined || this.#cursor.position < this.#goal) return;
    this.#goal = undefined;
    this.#onCaughtUp();
  }

  skipped(): void {
    // A reader keeps no place of its own that retention could take: what is gone is simply not among what is kept.
  }
}
