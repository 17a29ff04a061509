import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MemoryConnection, memoryBroker } from '../../../../src/adapters/memory/bus.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type { InboundRecord, Subscription, TopicPartition } from '../../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';

/** One thing that happens to the world. */
type Step =
  | { kind: 'join' | 'advance'; ms: number }
  | { kind: 'leave' | 'crash' | 'disconnect' | 'reconnect'; client: number }
  | { kind: 'produce'; partition: number; count: number }
  | { kind: 'acknowledge'; client: number; picks: number[] }
  | { kind: 'broker stops' | 'broker starts' };

const PARTITIONS = 4;
const TOPIC = 'work';
const GROUP = 'group';
const SESSION_TIMEOUT_MS = 6_000;
const DRAIN_TIMEOUT_MS = 1_000;

const index = fc.nat({ max: 9 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('join'), ms: fc.constantFrom(0, 5, 900, 1_500) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.constantFrom(0, 1, 10, 500, 7_000) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('leave', 'crash', 'disconnect', 'reconnect'),
      client: index,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('produce'),
      partition: fc.nat({ max: PARTITIONS - 1 }),
      count: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('acknowledge'),
      client: index,
      picks: fc.array(fc.nat({ max: 19 }), { minLength: 1, maxLength: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('broker stops', 'broker starts') }) },
) as fc.Arbitrary<Step>;

/** What one client believes, seen from its callbacks alone. */
class Client {
  readonly connection: MemoryConnection;
  readonly #world: World;
  readonly #drainMs: number;
  subscription: Subscription | undefined;
  /** Unacknowledged by this client, in the order of delivery. */
  pending: InboundRecord[] = [];
  readonly owned = new Map<number, { nextOffset: number }>();
  /** Out of the broker's sight: what it believes may be out of date. */
  blind = false;
  leaving = false;
  gone = false;

  constructor(world: World, connection: MemoryConnection, drainMs: number) {
    this.#world = world;
    this.connection = connection;
    this.#drainMs = drainMs;
    const joining = connection.subscribe(
      { group: GROUP, topics: [TOPIC], startAt: 'earliest', unacknowledgedMax: 6 },
      {
        onRecords: (records) => this.#receive(records),
        onAssigned: (places) => this.#own(places),
        onRevoked: (places) => this.#giveUp(places),
        onLost: (places) => this.#forget(places),
      },
    );
    joining.then(
      (subscription) => {
        this.subscription = subscription;
      },
      (error: unknown) => {
        // Whoever leaves before it has joined is told so.
        if (!this.leaving) world.errors.push(error);
      },
    );
  }

  acknowledge(record: InboundRecord): void {
    this.#world.acknowledged[record.partition]?.add(record.offset);
    this.subscription?.acknowledge(record);
    this.pending = this.pending.filter((each) => each !== record);
  }

  forgetAll(): void {
    this.owned.clear();
    this.pending = [];
    this.gone = true;
  }

  #own(places: readonly TopicPartition[]): void {
    for (const { partition } of places) {
      const owners = this.#world.clients.filter((client) => !client.blind && client.owned.has(partition));
      if (owners.length > 0) this.#world.errors.push(`partition ${partition} got a second owner`);
      this.owned.set(partition, { nextOffset: -1 });
    }
  }

  #receive(records: readonly InboundRecord[]): void {
    for (const record of records) {
      const place = this.owned.get(record.partition);
      if (this.gone || place === undefined)
        this.#world.errors.push(`${record.partition} delivered without owning`);
      else if (place.nextOffset >= 0 && record.offset !== place.nextOffset) {
        this.#world.errors.push(`${record.partition}/${record.offset} delivered out of order`);
      } else place.nextOffset = record.offset + 1;
      this.pending.push(record);
      const ofPartition = this.pending.filter(({ partition }) => partition === record.partition);
      if (ofPartition.length > 6) this.#world.errors.push('more unacknowledged records than asked for');
      if (this.#world.finishing) this.acknowledge(record);
    }
  }

  async #giveUp(places: readonly TopicPartition[]): Promise<void> {
    if (this.gone) this.#world.errors.push('revoked after the crash');
    // Whoever drains for too long loses the partitions when the time is up.
    await this.#pass(Math.min(this.#drainMs, DRAIN_TIMEOUT_MS));
    this.#forget(places);
    await this.#pass(Math.max(0, this.#drainMs - DRAIN_TIMEOUT_MS));
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, resolve);
    });
  }

  #forget(places: readonly TopicPartition[]): void {
    for (const { partition } of places) {
      this.owned.delete(partition);
      this.pending = this.pending.filter((record) => record.partition !== partition);
    }
  }
}

class World {
  readonly clock = virtualClock();
  readonly broker = memoryBroker({ clock: this.clock, deliveryDelayMs: 2 });
  readonly observer = this.#connect('observer');
  readonly clients: Client[] = [];
  readonly errors: unknown[] = [];
  readonly acknowledged = Array.from({ length: PARTITIONS }, () => new Set<number>());
  readonly produced = Array.from({ length: PARTITIONS }, () => 0);
  finishing = false;
  #running = true;

  async create(): Promise<void> {
    const created = this.observer.admin.createTopics([
      { name: TOPIC, partitions: PARTITIONS, replication: 1, config: {} },
    ]);
    await this.clock.advanceBy(1);
    await created;
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'join':
        this.join(step.ms);
        break;
      case 'advance':
        await this.clock.advanceBy(step.ms);
        break;
      case 'produce':
        this.#produce(step.partition, step.count);
        break;
      case 'acknowledge':
        this.#acknowledge(step.client, step.picks);
        break;
      case 'broker stops':
        this.#running = false;
        this.broker.stop();
        break;
      case 'broker starts':
        this.#running = true;
        this.broker.start();
        break;
      default:
        this.#disturb(step.kind, step.client);
    }
    await this.clock.advanceBy(0);
    await this.#checkCommits();
  }

  join(drainMs: number): void {
    if (this.clients.filter((client) => !client.gone).length >= 5) return;
    this.clients.push(new Client(this, this.#connect(`client-${this.clients.length}`), drainMs));
  }

  /** Everything comes back, and whatever is delivered is acknowledged: then all of it must be. */
  async finish(): Promise<void> {
    this.broker.start();
    this.#running = true;
    this.finishing = true;
    for (const client of this.clients) {
      client.connection.reconnect();
      for (const record of [...client.pending]) client.acknowledge(record);
    }
    this.join(0);
    await this.clock.advanceBy(SESSION_TIMEOUT_MS + 3 * DRAIN_TIMEOUT_MS);
    for (const client of this.clients) client.blind = false;
    await this.#checkCommits();
    expect(await this.#committed()).toEqual(
      this.produced.map((count) => (count === 0 ? expect.toBeOneOf([-1, 0]) : count)),
    );
    expect(this.acknowledged.map((offsets) => offsets.size)).toEqual(this.produced);
    const owners = this.clients.flatMap((client) => [...client.owned.keys()]).sort();
    expect(owners).toEqual([...Array(PARTITIONS).keys()]);
  }

  #connect(clientId: string): MemoryConnection {
    return this.broker.connect({
      clientId,
      drainTimeoutMs: DRAIN_TIMEOUT_MS,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      telemetry: silentTelemetry(),
    });
  }

  #produce(partition: number, count: number): void {
    for (let i = 0; i < count; i++) {
      const offset = this.produced[partition] ?? 0;
      this.produced[partition] = offset + 1;
      this.observer
        .produce({ topic: TOPIC, partition, key: null, value: Buffer.from(`${partition}/${offset}`) })
        .catch((error: unknown) => this.errors.push(error));
    }
  }

  #acknowledge(client: number, picks: readonly number[]): void {
    const chosen = this.#client(client);
    for (const pick of picks) {
      const record = chosen?.pending[pick];
      if (record !== undefined) chosen?.acknowledge(record);
    }
  }

  #disturb(kind: 'leave' | 'crash' | 'disconnect' | 'reconnect', number: number): void {
    const client = this.#client(number);
    if (client === undefined) return;
    if (kind === 'leave') {
      client.leaving = true;
      client.connection.close().then(
        () => client.forgetAll(),
        (error: unknown) => this.errors.push(error),
      );
    } else if (kind === 'crash') {
      client.connection.crash();
      client.forgetAll();
    } else if (kind === 'disconnect') {
      client.blind = true;
      client.connection.disconnect();
    } else {
      client.connection.reconnect();
    }
  }

  #client(number: number): Client | undefined {
    const present = this.clients.filter((client) => !client.gone);
    return present[number % Math.max(1, present.length)];
  }

  async #committed(): Promise<number[]> {
    const committed = this.observer.admin.committed(GROUP, TOPIC);
    await this.clock.advanceBy(0);
    return [...(await committed).values()];
  }

  async #checkCommits(): Promise<void> {
    expect(this.errors).toEqual([]);
    if (!this.#running) return;
    (await this.#committed()).forEach((committed, partition) => {
      for (let offset = 0; offset < committed; offset++) {
        expect(
          this.acknowledged[partition]?.has(offset),
          `${partition}/${offset} committed, not acknowledged`,
        ).toBe(true);
      }
    });
  }
}

describe('memory bus, under random joins, leaves, crashes, cuts and restarts', () => {
  it('has one owner per partition, commits nothing unfinished, and loses nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const world = new World();
        await world.create();
        for (const each of steps) await world.take(each);
        await world.finish();
      }),
      { numRuns: 300 },
    );
  });
});
