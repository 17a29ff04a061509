import type {
  KafkaClient,
  PartitionOffset,
  Session,
  SessionListener,
  SessionOptions,
} from '../../../../src/adapters/kafka/client.ts';
import { recordsOfRefused } from '../../../../src/adapters/kafka/unreadable.ts';
import type { InboundRecord, TopicPartition, Watermarks } from '../../../../src/ports/message-bus.ts';
import { record } from './records.ts';

/** A session whose broker is the test: it says what the group agreed, and serves fetches as a client library would. */
export class FakeSession implements Session {
  readonly listener: SessionListener;
  readonly commits: PartitionOffset[][] = [];
  readonly paused = new Set<number>();
  readonly positions = new Map<number, number>();
  rejoins = 0;
  isClosed = false;
  contactMs = 0;
  onCommit: () => Promise<void> = async () => undefined;

  readonly memberId: string;

  constructor(listener: SessionListener, memberId: string) {
    this.listener = listener;
    this.memberId = memberId;
  }

  seek({ partition }: TopicPartition, offset: number): void {
    this.positions.set(partition, offset);
  }
  pause({ partition }: TopicPartition): void {
    this.paused.add(partition);
  }
  resume({ partition }: TopicPartition): void {
    this.paused.delete(partition);
  }
  async commit(offsets: readonly PartitionOffset[]): Promise<void> {
    this.commits.push([...offsets]);
    await this.onCommit();
  }
  rejoin(): void {
    this.rejoins++;
  }
  sinceContactMs(): number {
    return this.contactMs;
  }
  async close(): Promise<void> {
    this.isClosed = true;
  }

  join(partitions: readonly number[], generation = 1, memberId = this.memberId): void {
    this.listener.onJoined(this, {
      memberId,
      generation,
      partitions: partitions.map((partition) => ({ topic: 'topic', partition })),
    });
  }

  /** Fetches `count` records of a partition from where it stands; answers the assignment number, undefined where they were not taken. */
  fetch(partition: number, count: number, from = this.positions.get(partition) ?? 0): number | undefined {
    if (this.paused.has(partition)) return undefined;
    const at = { topic: 'topic', partition };
    const assignment = this.listener.admit(at, from);
    if (assignment === undefined) return undefined;
    const records: InboundRecord[] = Array.from({ length: count }, (_, i) =>
      record(from + i, 1, { partition, assignment }),
    );
    this.positions.set(partition, from + count);
    this.listener.onFetched(at, records, from + count);
    return assignment;
  }

  /** Delivers a refused batch of so many offsets, from where the session stands. */
  fetchRefused(partition: number, offsets: number): void {
    const at = { topic: 'topic', partition };
    const from = this.positions.get(partition) ?? 0;
    const assignment = this.listener.admit(at, from);
    if (assignment === undefined) throw new Error('not admitted');
    const refused = {
      code: 'TOO_LARGE' as const,
      reason: 'unpacks to much',
      firstOffset: from,
      lastOffset: from + offsets - 1,
      digest: 'ff',
    };
    this.positions.set(partition, from + offsets);
    const records = recordsOfRefused(refused, from, { ...at, timestampMs: 0, assignment });
    this.listener.onFetched(at, records, from + offsets);
  }

  crash(error: unknown = new Error('crash')): void {
    this.listener.onCrashed(this, error);
  }

  lastCommitted(): Record<number, number> {
    return Object.fromEntries(this.commits.flat().map(({ partition, offset }) => [partition, offset]));
  }
}

/** A client of which consumers use nothing but sessions, commits and watermarks. */
export class FakeClient implements Pick<KafkaClient, 'openSession' | 'committed' | 'watermarks'> {
  readonly sessions: FakeSession[] = [];
  readonly options: SessionOptions[] = [];
  /** What the group assigns to each new session, at once. */
  firstAssignment: readonly number[] = [];
  committedOffsets = new Map<number, number>();
  marks: Watermarks[] = [0, 1, 2, 3].map((partition) => ({ partition, low: 0, high: 100 }));
  failures: Error[] = [];

  async openSession(options: SessionOptions, listener: SessionListener): Promise<Session> {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    const session = new FakeSession(listener, `member${this.sessions.length}`);
    this.sessions.push(session);
    this.options.push(options);
    session.join(this.firstAssignment);
    return session;
  }

  committed = async (): Promise<ReadonlyMap<number, number>> => this.committedOffsets;
  watermarks = async (): Promise<readonly Watermarks[]> => this.marks;

  get session(): FakeSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error('no session was opened');
    return session;
  }
}
