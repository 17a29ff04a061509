import type { TopicPartition } from '../../../ports/message-bus.ts';
import type { Logger } from '../../../ports/telemetry.ts';
import type { Joined, PartitionOffset, Session, SessionListener, SessionOptions } from '../client.ts';
import type { ClientOptions } from '../options.ts';
import { Cluster } from './cluster.ts';
import { Fetcher } from './fetcher.ts';
import { GroupMember } from './group-member.ts';

interface SessionContext {
  client: ClientOptions;
  session: SessionOptions;
  listener: SessionListener;
  logger: Logger;
}

/** A membership and its fetches, with connections of their own: a join or a fetch that waits holds up what comes after it on its connection. */
export class GroupSession implements Session {
  readonly #clusters: readonly [forGroup: Cluster, forFetches: Cluster];
  readonly #member: GroupMember;
  readonly #fetcher: Fetcher;
  readonly #context: SessionContext;
  #isOver = false;
  /** Partitions of all topics. */
  #count = 0;

  constructor(context: SessionContext) {
    const { client, session, listener, logger } = context;
    const forGroup = new Cluster(client, client.requestTimeoutMs + session.rebalanceTimeoutMs);
    const forFetches = new Cluster(client);
    this.#context = context;
    this.#clusters = [forGroup, forFetches];
    this.#member = new GroupMember({
      cluster: forGroup,
      session,
      claims: () => listener.claims(),
      onJoined: (joined) => this.#onJoined(joined),
      onCrashed: (error) => this.#onCrashed(error),
      logger,
    });
    this.#fetcher = new Fetcher({
      cluster: forFetches,
      topics: session.topics,
      listener,
      onDescribed: () => this.#rejoinIfGrown(forFetches),
      logger,
    });
  }

  /** Resolves after the first join. */
  async open(): Promise<void> {
    try {
      await this.#member.join();
    } catch (error) {
      this.#isOver = true;
      await this.close();
      throw error;
    }
  }

  seek(partition: TopicPartition, offset: number): void {
    this.#fetcher.seek(partition, offset);
  }

  pause(partition: TopicPartition): void {
    this.#fetcher.pause(partition);
  }

  resume(partition: TopicPartition): void {
    this.#fetcher.resume(partition);
  }

  commit(offsets: readonly PartitionOffset[]): Promise<void> {
    return this.#member.commit(offsets);
  }

  rejoin(): void {
    this.#member.rejoin();
  }

  sinceContactMs(): number {
    const { answeredAt, isIdle } = this.#fetcher;
    return performance.now() - (isIdle ? Math.max(answeredAt, this.#member.answeredAt) : answeredAt);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    const [forGroup, forFetches] = this.#clusters;
    const left = this.#member.leave().finally(() => forGroup.close());
    await Promise.allSettled([left, this.#fetcher.close(), forFetches.close()]);
  }

  #onJoined(joined: Joined): void {
    if (this.#isOver) return;
    this.#fetcher.assign(joined.partitions);
    this.#context.listener.onJoined(this, joined);
  }

  #onCrashed(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    void this.close();
    this.#context.listener.onCrashed(this, error);
  }

  /** New partitions belong to nobody until the group agrees on them. A broker that knows of fewer is behind. */
  #rejoinIfGrown(cluster: Cluster): void {
    const { topics, membership } = this.#context.session;
    const count = topics.reduce((sum, topic) => sum + (cluster.topic(topic)?.leaders.length ?? 0), 0);
    if (count <= this.#count) return;
    if (this.#count > 0 && membership.kind === 'spread') this.#member.rejoin();
    this.#count = count;
  }
}

/** Reads all partitions, or those that it is told, without a group. */
export class ReaderSession implements Session {
  readonly #cluster: Cluster;
  readonly #fetcher: Fetcher;
  readonly #context: SessionContext;
  #known = 0;
  #generation = 0;

  constructor(context: SessionContext) {
    this.#context = context;
    this.#cluster = new Cluster(context.client);
    this.#fetcher = new Fetcher({
      cluster: this.#cluster,
      topics: context.session.topics,
      listener: context.listener,
      onDescribed: () => this.#assignIfGrown(),
      logger: context.logger,
    });
  }

  async open(): Promise<void> {
    try {
      await this.#cluster.describe(this.#context.session.topics);
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#assignIfGrown();
  }

  seek(partition: TopicPartition, offset: number): void {
    this.#fetcher.seek(partition, offset);
  }

  pause(partition: TopicPartition): void {
    this.#fetcher.pause(partition);
  }

  resume(partition: TopicPartition): void {
    this.#fetcher.resume(partition);
  }

  /** Readers keep no commits. */
  async commit(): Promise<void> {}

  rejoin(): void {}

  sinceContactMs(): number {
    return performance.now() - this.#fetcher.answeredAt;
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#fetcher.close(), this.#cluster.close()]);
  }

  #assignIfGrown(): void {
    const partitions = this.#partitions();
    if (partitions.length <= this.#known) return;
    this.#known = partitions.length;
    this.#fetcher.assign(partitions);
    this.#context.listener.onJoined(this, { memberId: 'reader', generation: this.#generation++, partitions });
  }

  #partitions(): TopicPartition[] {
    const { topics, membership } = this.#context.session;
    const wanted = membership.kind === 'reader' ? membership.partitions : undefined;
    return topics.flatMap((topic) =>
      (this.#cluster.topic(topic)?.leaders ?? []).flatMap((_, partition) =>
        (wanted?.includes(partition) ?? true) ? [{ topic, partition }] : [],
      ),
    );
  }
}
