import { MillraceError } from '../../core/errors.ts';
import { missingTopic } from '../../core/missing-topic.ts';
import { backoffMs } from './backoff.ts';
import type { KafkaClient } from './client.ts';

const AGE_MAX_MS = 5_000;
/** A topic that was just created is not known to every broker at once. */
const APPEAR_TIMEOUT_MS = 5_000;
/** Nor is one that exists to a broker that has only just started: it is believed that it is gone when nobody knew it for so long. */
const FORGET_AFTER_MS = 10_000;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;

type Leaders = readonly number[];

interface Entry {
  /** Leader per partition, -1 where there is none just now. */
  readonly leaders: Leaders;
  /** When a broker last knew the topic. */
  readonly seenAt: number;
  /** When a broker was last asked. */
  readAt: number;
}

/** What the cluster says of topics, at most some seconds old. */
export class TopicCatalog {
  readonly #client: Pick<KafkaClient, 'leaders'>;
  readonly #entries = new Map<string, Entry>();
  readonly #reading = new Map<string, Promise<void>>();

  constructor(client: Pick<KafkaClient, 'leaders'>) {
    this.#client = client;
  }

  /** As it was last read; undefined for what was never read or does not exist. */
  leaderOf(topic: string, partition: number): number | undefined {
    return this.#entries.get(topic)?.leaders[partition];
  }

  /**
   * While no broker answers, what was known last is the best that can be said.
   * @throws MillraceError BUS_UNAVAILABLE where the topic does not exist.
   */
  async partitionCount(topic: string): Promise<number> {
    const entry = this.#entries.get(topic);
    if (entry === undefined || performance.now() - entry.readAt > AGE_MAX_MS) {
      try {
        await this.refresh(topic);
      } catch (error) {
        if (entry === undefined)
          throw new MillraceError('BUS_UNAVAILABLE', 'No broker answered', { cause: error });
      }
    }
    return this.#entries.get(topic)?.leaders.length ?? raise(missingTopic(topic));
  }

  /**
   * Waits while no broker answers, and some seconds for a topic that may be new.
   * @throws MillraceError BUS_UNAVAILABLE where the topic does not exist, or `isWanted` says that it is of no use any more.
   */
  async awaitTopic(topic: string, isWanted: () => boolean): Promise<void> {
    await this.#poll(topic, isWanted, (leaders) => (leaders === undefined ? 'absent' : 0));
  }

  /**
   * Waits until the partition has a leader.
   * @throws MillraceError BUS_UNAVAILABLE where there is no such partition, and none appears within some seconds.
   */
  async findLeader(topic: string, partition: number, isWanted: () => boolean): Promise<number> {
    return this.#poll(topic, isWanted, (leaders) => {
      const leader = leaders?.[partition];
      if (leader === undefined) return 'absent';
      return leader < 0 ? 'later' : leader;
    }).catch((error: unknown) => {
      const count = this.#entries.get(topic)?.leaders.length;
      throw count === undefined ? error : unknownPartition(topic, partition, count);
    });
  }

  /** Reads the topic anew; calls for the same topic share one request. */
  refresh(topic: string): Promise<void> {
    let reading = this.#reading.get(topic);
    if (reading === undefined) {
      reading = this.#read(topic).finally(() => this.#reading.delete(topic));
      this.#reading.set(topic, reading);
    }
    return reading;
  }

  async #poll<T>(
    topic: string,
    isWanted: () => boolean,
    look: (leaders: Leaders | undefined) => T | 'absent' | 'later',
  ): Promise<T> {
    const giveUpAt = performance.now() + APPEAR_TIMEOUT_MS;
    for (let attempt = 0; isWanted(); attempt++) {
      const found = await this.refresh(topic).then(
        () => look(this.#entries.get(topic)?.leaders),
        () => 'later' as const,
      );
      if (found !== 'absent' && found !== 'later') return found;
      if (found === 'absent' && performance.now() > giveUpAt) break;
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, RETRY_FIRST_MS, RETRY_MOST_MS)));
    }
    throw missingTopic(topic);
  }

  async #read(topic: string): Promise<void> {
    const leaders = (await this.#client.leaders([topic])).get(topic);
    const now = performance.now();
    const entry = this.#entries.get(topic);
    if (leaders !== undefined) this.#entries.set(topic, { leaders, seenAt: now, readAt: now });
    else if (entry === undefined || now - entry.seenAt > FORGET_AFTER_MS) this.#entries.delete(topic);
    else entry.readAt = now;
  }
}

function unknownPartition(topic: string, partition: number, count: number): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', `The topic ${topic} has no such partition`, {
    value: partition,
    allowed: `0 … ${count - 1}`,
  });
}

function raise(error: Error): never {
  throw error;
}
