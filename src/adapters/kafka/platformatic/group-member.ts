import {
  decodeConsumerProtocolAssignment,
  decodeConsumerProtocolSubscription,
  encodeConsumerProtocolAssignment,
  encodeConsumerProtocolSubscription,
  type joinGroupV9,
  type syncGroupV5,
} from '@platformatic/kafka';
import type { TopicPartition } from '../../../ports/message-bus.ts';
import type { Logger } from '../../../ports/telemetry.ts';
import { assignPartitions, type Member, protocolName } from '../assignment.ts';
import { backoffMs } from '../backoff.ts';
import { type Claims, decodeClaims, encodeClaims } from '../claims.ts';
import type { Joined, PartitionOffset, SessionOptions } from '../client.ts';
import { byTopic } from '../partition-table.ts';
import { type Cluster, protocolErrorOf, responseOf } from './cluster.ts';

const PROTOCOL_TYPE = 'consumer';
const HEARTBEAT_MOST_MS = 1_000;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 500;
/** How long a member tries to join before its session counts as over. */
const JOIN_PATIENCE_MS = 30_000;

/** Answers that mean: what you know of the group is old, join again. */
const REJOIN = new Set([
  'REBALANCE_IN_PROGRESS',
  'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID',
  'MEMBER_ID_REQUIRED',
  'FENCED_INSTANCE_ID',
]);
/** Answers that no further attempt changes. */
const HOPELESS = new Set([
  'INCONSISTENT_GROUP_PROTOCOL',
  'INVALID_GROUP_ID',
  'INVALID_SESSION_TIMEOUT',
  'GROUP_AUTHORIZATION_FAILED',
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_MAX_SIZE_REACHED',
]);

export interface GroupMemberOptions {
  cluster: Cluster;
  session: SessionOptions;
  claims(): Claims;
  /** The group agreed. */
  onJoined(joined: Joined): void;
  /** The member is out, for good. */
  onCrashed(error: unknown): void;
  logger: Logger;
}

/** A member of a classic consumer group: joins, keeps its membership alive, joins again when the group changes, and commits. */
export class GroupMember {
  readonly #options: GroupMemberOptions;
  #coordinator: number | undefined;
  #memberId = '';
  #generation = -1;
  #isOver = false;
  #isJoining = false;
  #wantsRejoin = false;
  #heartbeat: NodeJS.Timeout | undefined;
  #answeredAt = performance.now();

  constructor(options: GroupMemberOptions) {
    this.#options = options;
  }

  get answeredAt(): number {
    return this.#answeredAt;
  }

  /** Joins until the group agrees; `onJoined` is called before this resolves. Rejects where that takes too long or cannot succeed. */
  async join(): Promise<void> {
    this.#isJoining = true;
    clearTimeout(this.#heartbeat);
    const giveUpAt = performance.now() + JOIN_PATIENCE_MS;
    try {
      for (let attempt = 0; !this.#isOver; attempt++) {
        try {
          await this.#joinOnce();
          return;
        } catch (error) {
          if (HOPELESS.has(protocolErrorOf(error) ?? '') || performance.now() > giveUpAt) throw error;
          if (!this.#learn(error))
            await new Promise((resolve) =>
              setTimeout(resolve, backoffMs(attempt, RETRY_FIRST_MS, RETRY_MOST_MS)),
            );
        }
      }
    } finally {
      this.#isJoining = false;
      this.#beatLater();
    }
  }

  rejoin(): void {
    this.#wantsRejoin = true;
    if (!this.#isJoining) this.#joinAgain();
  }

  /** Under the generation of this moment: once that is over the broker refuses it. */
  async commit(offsets: readonly PartitionOffset[]): Promise<void> {
    const { session, cluster } = this.#options;
    if (this.#coordinator === undefined) throw new Error('no coordinator is known just now');
    const topics = [...byTopic(offsets)].map(([name, partitions]) => ({
      name,
      partitions: partitions.map(({ partition, offset }) => ({
        partitionIndex: partition,
        committedOffset: BigInt(offset),
        committedLeaderEpoch: -1,
        committedMetadata: null,
      })),
    }));
    await cluster.request(
      this.#coordinator,
      'OffsetCommit',
      session.group,
      this.#generation,
      this.#memberId,
      null,
      topics,
    );
  }

  async leave(): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#heartbeat);
    if (this.#memberId === '' || this.#coordinator === undefined) return;
    const { session, cluster } = this.#options;
    await cluster.request(this.#coordinator, 'LeaveGroup', session.group, [{ memberId: this.#memberId }]);
  }

  async #joinOnce(): Promise<void> {
    const { cluster, session, onJoined } = this.#options;
    const { group, sessionTimeoutMs, rebalanceTimeoutMs } = session;
    this.#coordinator = await cluster.findCoordinator(group);
    this.#wantsRejoin = false;
    const protocols = [{ name: protocolName(session.membership), metadata: this.#subscription() }];
    const answer = await cluster.request<joinGroupV9.JoinGroupResponse>(
      this.#coordinator,
      'JoinGroup',
      group,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      this.#memberId,
      null,
      PROTOCOL_TYPE,
      protocols,
      '',
    );
    this.#memberId = answer.memberId;
    const assignments = answer.leader === answer.memberId ? await this.#decide(answer) : [];
    const synced = await cluster.request<syncGroupV5.SyncGroupResponse>(
      this.#coordinator,
      'SyncGroup',
      group,
      answer.generationId,
      answer.memberId,
      null,
      PROTOCOL_TYPE,
      answer.protocolName,
      assignments,
    );
    if (this.#isOver) return;
    this.#generation = answer.generationId;
    this.#answeredAt = performance.now();
    onJoined({
      memberId: this.#memberId,
      generation: this.#generation,
      partitions: readAssignment(synced.assignment),
    });
  }

  #subscription(): Buffer {
    const { session, claims } = this.#options;
    return encodeConsumerProtocolSubscription({
      version: 0,
      topics: [...session.topics],
      userData: encodeClaims(claims()),
    });
  }

  async #decide({
    members,
  }: joinGroupV9.JoinGroupResponse): Promise<{ memberId: string; assignment: Buffer }[]> {
    const { cluster, session } = this.#options;
    const known = members.map(readMember);
    const topics = await cluster.describe([...new Set(known.flatMap((member) => member.topics))]);
    const assignment = assignPartitions(
      session.membership,
      known,
      (topic) => topics.get(topic)?.leaders.length ?? 0,
    );
    return known.map(({ id }) => ({ memberId: id, assignment: writeAssignment(assignment.get(id) ?? []) }));
  }

  #beatLater(): void {
    clearTimeout(this.#heartbeat);
    if (this.#isOver) return;
    const intervalMs = Math.min(HEARTBEAT_MOST_MS, Math.floor(this.#options.session.sessionTimeoutMs / 6));
    this.#heartbeat = setTimeout(() => void this.#beat(), intervalMs);
  }

  async #beat(): Promise<void> {
    const { cluster, session, logger } = this.#options;
    try {
      if (this.#coordinator === undefined) this.#coordinator = await cluster.findCoordinator(session.group);
      await cluster.request(
        this.#coordinator,
        'Heartbeat',
        session.group,
        this.#generation,
        this.#memberId,
        null,
      );
      this.#answeredAt = performance.now();
    } catch (error) {
      if (this.#isOver || this.#isJoining) return;
      const isRejoin = REJOIN.has(protocolErrorOf(error) ?? '');
      if (!isRejoin) this.#coordinator = undefined;
      logger.debug({ error, isRejoin }, 'a heartbeat was refused');
      this.#learn(error);
      if (isRejoin) {
        this.#joinAgain();
        return;
      }
    }
    if (this.#wantsRejoin) this.#joinAgain();
    else if (!this.#isJoining) this.#beatLater();
  }

  #joinAgain(): void {
    if (this.#isOver || this.#isJoining) return;
    this.join().then(
      () => {
        if (this.#wantsRejoin) this.#joinAgain();
      },
      (error: unknown) => {
        if (this.#isOver) return;
        this.#isOver = true;
        clearTimeout(this.#heartbeat);
        this.#options.onCrashed(error);
      },
    );
  }

  /** Takes what an error says about the membership; true where the next attempt may follow at once. */
  #learn(error: unknown): boolean {
    const id = protocolErrorOf(error);
    if (id === 'MEMBER_ID_REQUIRED') {
      this.#memberId = responseOf<{ memberId: string }>(error)?.memberId ?? '';
      return true;
    }
    if (id === 'UNKNOWN_MEMBER_ID' || id === 'FENCED_INSTANCE_ID') {
      this.#memberId = '';
      return true;
    }
    return id === 'REBALANCE_IN_PROGRESS';
  }
}

function readMember({ memberId, metadata }: joinGroupV9.JoinGroupResponseMember): Member {
  const { topics, userData } = decodeConsumerProtocolSubscription(metadata);
  return { id: memberId, topics, ...decodeClaims(userData) };
}

function writeAssignment(partitions: readonly TopicPartition[]): Buffer {
  const assignedPartitions = [...byTopic(partitions)].map(([topic, list]) => ({
    topic,
    partitions: list.map(({ partition }) => partition),
  }));
  return encodeConsumerProtocolAssignment({ version: 0, assignedPartitions, userData: Buffer.alloc(0) });
}

function readAssignment(assignment: Buffer): TopicPartition[] {
  if (assignment.length === 0) return [];
  return decodeConsumerProtocolAssignment(assignment).assignedPartitions.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}
