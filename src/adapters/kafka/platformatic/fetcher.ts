import type { fetchV17 } from '@platformatic/kafka';
import type { TopicPartition } from '../../../ports/message-bus.ts';
import type { Logger } from '../../../ports/telemetry.ts';
import { backoffMs } from '../backoff.ts';
import type { SessionListener } from '../client.ts';
import { FETCH_BYTES_MAX, FetchOrder, PARTITION_BYTES_MAX, topicRuns } from '../fetch-order.ts';
import { PartitionTable } from '../partition-table.ts';
import { type Cluster, responseOf } from './cluster.ts';
import { readFetched } from './fetched-records.ts';

const FETCH_WAIT_MS = 100;
const READ_COMMITTED = 1;
const NO_SESSION = { id: 0, epoch: -1 };
const METADATA_AGE_MAX_MS = 5_000;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;
const OFFSET_OUT_OF_RANGE = 1;

type FetchResponse = fetchV17.FetchResponse;

interface Place extends TopicPartition {
  /** Where the next fetch begins; undefined until it is sought. */
  position: number | undefined;
  isPaused: boolean;
}

export interface FetcherOptions {
  cluster: Cluster;
  topics: readonly string[];
  listener: Pick<SessionListener, 'admit' | 'positionOf' | 'onFetched' | 'onOutOfRange'>;
  /** The topics as they are now; called when they were described anew. */
  onDescribed(): void;
  logger: Logger;
}

/** Fetches the partitions of one consumer: a loop per leader, each with one request under way. */
export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #places = new PartitionTable<Place>();
  readonly #order = new FetchOrder();
  /** Nodes that a loop runs for; -1 is the loop that looks for leaders. */
  readonly #loops = new Map<number, Promise<void>>();
  /** Whoever owns nothing fetches nothing, and yet must hear of a topic that grows. */
  readonly #watch = setInterval(() => this.#describeQuietly(), METADATA_AGE_MAX_MS);
  #isOver = false;
  #describedAt = Number.NEGATIVE_INFINITY;
  #answeredAt = performance.now();

  constructor(options: FetcherOptions) {
    this.#options = options;
  }

  /** True where there is nothing to fetch: nothing assigned, or all of it paused. */
  get isIdle(): boolean {
    return this.#places.values().every(({ isPaused }) => isPaused);
  }

  get answeredAt(): number {
    return this.#answeredAt;
  }

  /** Replaces the partitions. They are fetched once they are sought. */
  assign(partitions: readonly TopicPartition[]): void {
    this.#places.clear();
    for (const { topic, partition } of partitions) {
      this.#places.set(topic, partition, { topic, partition, position: undefined, isPaused: true });
    }
    this.#answeredAt = performance.now();
  }

  seek({ topic, partition }: TopicPartition, position: number): void {
    const place = this.#places.get(topic, partition);
    if (place !== undefined) place.position = position;
  }

  pause({ topic, partition }: TopicPartition): void {
    const place = this.#places.get(topic, partition);
    if (place !== undefined) place.isPaused = true;
  }

  resume({ topic, partition }: TopicPartition): void {
    const place = this.#places.get(topic, partition);
    if (place === undefined) return;
    if (this.isIdle) this.#answeredAt = performance.now();
    place.isPaused = false;
    this.#startLoop(this.#leaderOf(place));
  }

  /** Resolves when no request is under way any more. */
  async close(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#watch);
    await Promise.all(this.#loops.values());
  }

  #leaderOf({ topic, partition }: TopicPartition): number {
    return this.#options.cluster.topic(topic)?.leaders[partition] ?? -1;
  }

  #placesOf(node: number): (Place & { position: number })[] {
    const active = this.#places.values().filter(isActive);
    return this.#order.sorted(active.filter((place) => this.#leaderOf(place) === node));
  }

  #startLoop(node: number): void {
    if (this.#isOver || this.#loops.has(node)) return;
    const loop = this.#run(node).finally(() => {
      this.#loops.delete(node);
      // Resumed while the loop was about to end.
      if (this.#placesOf(node).length > 0) this.#startLoop(node);
    });
    this.#loops.set(node, loop);
  }

  async #run(node: number): Promise<void> {
    for (let failures = 0; !this.#isOver; ) {
      // After the current turn, so that whoever resumes several partitions gets them into one request.
      await new Promise((resolve) => setImmediate(resolve));
      try {
        await this.#describeIfOld(node === -1);
        const places = this.#placesOf(node);
        if (places.length === 0) return;
        const isSound = node >= 0 && (await this.#fetch(node, places));
        failures = isSound ? 0 : failures + 1;
      } catch (error) {
        failures++;
        this.#options.logger.debug({ error, broker: node, failures }, 'a fetch failed');
      }
      if (failures > 0 && !this.#isOver) {
        await new Promise((resolve) =>
          setTimeout(resolve, backoffMs(failures - 1, RETRY_FIRST_MS, RETRY_MOST_MS)),
        );
        this.#describedAt = Number.NEGATIVE_INFINITY;
      }
    }
  }

  #describeQuietly(): void {
    if (this.#loops.size > 0) return;
    this.#describeIfOld(true).catch((error: unknown) => {
      this.#options.logger.debug({ error }, 'the topics could not be described');
    });
  }

  /** Partitions may have moved to another leader, and topics may have grown. */
  async #describeIfOld(isNow: boolean): Promise<void> {
    if (!isNow && performance.now() - this.#describedAt < METADATA_AGE_MAX_MS) return;
    const { cluster, topics, onDescribed } = this.#options;
    this.#describedAt = performance.now();
    await cluster.describe(topics);
    if (this.#isOver) return;
    onDescribed();
    for (const place of this.#places.values()) if (isActive(place)) this.#startLoop(this.#leaderOf(place));
  }

  /** False where some partition was answered with an error that passes. */
  async #fetch(node: number, places: readonly (Place & { position: number })[]): Promise<boolean> {
    const { cluster } = this.#options;
    const asked = new PartitionTable<number>();
    const names = new Map<string, string>();
    const topics = topicRuns(places).map(({ topic, partitions: own }) => {
      const topicId = cluster.topic(topic)?.id ?? '';
      names.set(topicId, topic);
      return { topicId, partitions: own.map(({ partition, position }) => toRequest(partition, position)) };
    });
    for (const { topic, partition, position } of places) asked.set(topic, partition, position);
    const response = await this.#request(node, topics);
    if (this.#isOver) return true;
    this.#answeredAt = performance.now();
    let isSound = response.errorCode === 0;
    for (const { topicId, partitions } of response.responses) {
      // Old versions name topics by their name.
      const topic = names.get(topicId) ?? topicId;
      for (const each of partitions) {
        const from = asked.get(topic, each.partitionIndex);
        if (from !== undefined && !this.#take({ topic, partition: each.partitionIndex }, from, each))
          isSound = false;
      }
    }
    return isSound;
  }

  async #request(
    node: number,
    topics: readonly { topicId: string; partitions: readonly object[] }[],
  ): Promise<FetchResponse> {
    const { id, epoch } = NO_SESSION;
    const args = [FETCH_WAIT_MS, 1, FETCH_BYTES_MAX, READ_COMMITTED, id, epoch, topics, [], ''];
    try {
      return await this.#options.cluster.request<FetchResponse>(node, 'Fetch', ...args);
    } catch (error) {
      const response = responseOf<FetchResponse>(error);
      if (response === undefined) throw error;
      return response;
    }
  }

  #take(at: TopicPartition, from: number, fetched: fetchV17.FetchResponsePartition): boolean {
    const { listener } = this.#options;
    const place = this.#places.get(at.topic, at.partition);
    // Paused, sought or given away while the request was under way.
    if (place === undefined || place.isPaused || place.position !== from) return true;
    if (fetched.errorCode === OFFSET_OUT_OF_RANGE) {
      place.isPaused = true;
      listener.onOutOfRange(at);
      return true;
    }
    if (fetched.errorCode !== 0) return false;
    if (fetched.records === null || fetched.records === undefined || fetched.records.length === 0)
      return true;
    this.#order.served(at);
    const assignment = listener.admit(at, from);
    if (assignment === undefined) {
      place.position = listener.positionOf(at);
      return true;
    }
    const { records, position } = readFetched(
      at,
      from,
      fetched.records,
      fetched.abortedTransactions ?? [],
      assignment,
    );
    place.position = position;
    listener.onFetched(at, records, position);
    return true;
  }
}

function isActive(place: Place): place is Place & { position: number } {
  return !place.isPaused && place.position !== undefined;
}

function toRequest(partition: number, position: number) {
  return {
    partition,
    currentLeaderEpoch: -1,
    fetchOffset: BigInt(position),
    lastFetchedEpoch: -1,
    partitionMaxBytes: PARTITION_BYTES_MAX,
  };
}
