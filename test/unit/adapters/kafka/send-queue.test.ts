import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PartitionBatch, SendOutcome } from '../../../../src/adapters/kafka/client.ts';
import { SendQueue } from '../../../../src/adapters/kafka/send-queue.ts';
import { TopicCatalog } from '../../../../src/adapters/kafka/topic-catalog.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';

const STORED: SendOutcome = { status: 'stored', baseOffset: -1 };
const delayed: SendOutcome = { status: 'delayed', error: new Error('not enough replicas') };

/** A broker as the queue sees it: what it stored, and how it answers the next requests. */
class Broker {
  readonly log = new Map<string, string[]>();
  readonly requests: (readonly PartitionBatch[])[] = [];
  inFlight = new Map<string, number>();
  mostInFlight = 0;
  resets = 0;
  leaderOf = new Map<string, number[]>([
    ['a', [1, 1, 2]],
    ['b', [1, 2]],
  ]);
  /** Decides what becomes of a request; undefined stores everything. */
  answer: (batches: readonly PartitionBatch[]) => SendOutcome[] | Error | undefined = () => undefined;
  /** Holds every answer back until it resolves. */
  gate: Promise<void> = Promise.resolve();

  leaders = async (topics: readonly string[]): Promise<Map<string, number[]>> =>
    new Map(
      topics.flatMap((topic) =>
        this.leaderOf.has(topic) ? [[topic, this.leaderOf.get(topic) ?? []] as const] : [],
      ),
    );

  resetSending = async (): Promise<void> => {
    this.resets++;
  };

  send = async (batches: readonly PartitionBatch[]): Promise<SendOutcome[]> => {
    this.requests.push(batches);
    for (const batch of batches) this.#count(batch, 1);
    await this.gate;
    await new Promise((resolve) => setImmediate(resolve));
    for (const batch of batches) this.#count(batch, -1);
    const answer = this.answer(batches);
    if (answer instanceof Error) throw answer;
    const outcomes = answer ?? batches.map(() => STORED);
    for (const [index, { topic, partition, records }] of batches.entries()) {
      if (outcomes[index]?.status !== 'stored') continue;
      const key = `${topic}/${partition}`;
      this.log.set(key, [
        ...(this.log.get(key) ?? []),
        ...records.map(({ value }) => value?.toString() ?? 'null'),
      ]);
    }
    return outcomes;
  };

  #count({ topic, partition }: PartitionBatch, by: number): void {
    const key = `${topic}/${partition}`;
    const count = (this.inFlight.get(key) ?? 0) + by;
    this.inFlight.set(key, count);
    this.mostInFlight = Math.max(this.mostInFlight, count);
  }
}

let broker: Broker;
let queue: SendQueue;
let retries: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  broker = new Broker();
  retries = 0;
  queue = new SendQueue({
    client: broker,
    catalog: new TopicCatalog(broker),
    logger: silentTelemetry().logger,
    onRetry: () => retries++,
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const produce = (topic: string, partition: number, value: string) =>
  queue.produce({ topic, partition, key: null, value: Buffer.from(value) });

/** Lets waits pass until the promise settles. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const noted = promise.finally(() => {
    isSettled = true;
  });
  noted.catch(() => undefined);
  for (let i = 0; !isSettled; i++) {
    if (i > 20_000) throw new Error('it does not settle');
    await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(20);
  }
  return noted;
}

describe('SendQueue', () => {
  it('keeps the order of each partition, loses nothing and repeats nothing that was stored, through any refusals', async () => {
    const fate = fc.constantFrom('stored', 'stored', 'delayed', 'lost');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat(4), { minLength: 1, maxLength: 80 }),
        async (fates, places) => {
          const own = new Broker();
          let turn = 0;
          own.answer = (batches) => {
            const next = () => fates[turn++ % fates.length];
            if (turn > 200) return undefined;
            const first = next();
            if (first === 'lost') return new Error('connection lost');
            return batches.map((_, index) =>
              (index === 0 ? first : next()) === 'delayed' ? delayed : STORED,
            );
          };
          const ownQueue = new SendQueue({
            client: own,
            catalog: new TopicCatalog(own),
            logger: silentTelemetry().logger,
            onRetry: () => undefined,
          });
          const targets = [
            ['a', 0],
            ['a', 1],
            ['a', 2],
            ['b', 0],
            ['b', 1],
          ] as const;
          const expected = new Map<string, string[]>();
          const produced = places.map((place, index) => {
            const [topic, partition] = targets[place] ?? targets[0];
            const key = `${topic}/${partition}`;
            expected.set(key, [...(expected.get(key) ?? []), `v${index}`]);
            return ownQueue.produce({ topic, partition, key: null, value: Buffer.from(`v${index}`) });
          });
          await settled(Promise.all(produced));
          expect([...own.log].sort()).toEqual([...expected].sort());
          expect(own.mostInFlight).toBe(1);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('sends what gathered while a request was in flight as one batch, and what one turn produces together', async () => {
    let open: () => void = () => undefined;
    broker.gate = new Promise((resolve) => {
      open = resolve;
    });
    const first = [produce('a', 0, 'v0'), produce('a', 1, 'v1')];
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    const later = Array.from({ length: 50 }, (_, i) => produce('a', i % 2, `w${i}`));
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(broker.requests).toHaveLength(1);
    open();
    await settled(Promise.all([...first, ...later]));
    expect(broker.requests.map((batches) => batches.map(({ records }) => records.length))).toEqual([
      [1, 1],
      [25, 25],
    ]);
  });

  it('lets a slow broker hold up only its own partitions', async () => {
    let open: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { send } = broker;
    broker.send = async (batches) => {
      if (batches.some(({ topic, partition }) => broker.leaderOf.get(topic)?.[partition] === 2)) await slow;
      return send(batches);
    };
    const stuck = produce('a', 2, 'stuck');
    await settled(produce('a', 0, 'v'));
    expect(broker.log.get('a/2')).toBeUndefined();
    open();
    await settled(stuck);
  });

  it('lets a refused partition wait by itself, while others of the same request go on', async () => {
    let isRefusing = true;
    broker.answer = (batches) =>
      batches.map(({ partition }) => (isRefusing && partition === 1 ? delayed : STORED));
    let isStored = false;
    const refused = produce('a', 1, 'refused').then(() => {
      isStored = true;
    });
    await settled(produce('a', 0, 'v'));
    for (let i = 0; i < 30; i++) await settled(produce('a', 0, `v${i}`));
    expect(isStored).toBe(false);
    expect(retries).toBeGreaterThan(2);
    isRefusing = false;
    await settled(refused);
  });

  it.each(['too-large', 'invalid'] as const)(
    'finds the one record that is %s, rejects it alone and stores the rest in order',
    async (status) => {
      const values = Array.from({ length: 100 }, (_, i) => `v${i}`);
      broker.answer = (batches) =>
        batches.map(({ records }) =>
          records.some(({ value }) => value?.toString() === 'v37')
            ? { status, error: new Error('bad record') }
            : STORED,
        );
      const results = await settled(Promise.allSettled(values.map((value) => produce('a', 0, value))));
      const failed = results.flatMap((result, index) =>
        result.status === 'rejected' ? [{ index, reason: result.reason }] : [],
      );
      expect(failed).toMatchObject([
        { index: 37, reason: { code: status === 'too-large' ? 'TOO_LARGE' : 'POISON' } },
      ]);
      expect(broker.log.get('a/0')).toEqual(values.filter((value) => value !== 'v37'));
      expect(broker.requests.length).toBeLessThan(30);
      await settled(produce('a', 0, 'after'));
    },
  );

  it('follows a partition to its new leader without overtaking what the old one has', async () => {
    broker.answer = () => new Error('connection lost');
    const before = Array.from({ length: 5 }, (_, i) => produce('a', 0, `v${i}`));
    for (let i = 0; i < 10; i++) await vi.advanceTimersByTimeAsync(50);
    broker.leaderOf.set('a', [2, 1, 2]);
    const after = Array.from({ length: 5 }, (_, i) => produce('a', 0, `w${i}`));
    broker.answer = () => undefined;
    await settled(Promise.all([...before, ...after]));
    expect(broker.log.get('a/0')).toEqual(['v0', 'v1', 'v2', 'v3', 'v4', 'w0', 'w1', 'w2', 'w3', 'w4']);
    expect(broker.mostInFlight).toBe(1);
  });

  it('distrusts its connections after failures in a row', async () => {
    let failures = 0;
    broker.answer = () => (failures++ < 10 ? new Error('connection lost') : undefined);
    await settled(produce('a', 0, 'v'));
    expect(broker.resets).toBe(1);
  });

  it.each([
    { what: 'fails', reset: () => Promise.reject(new Error('the socket hung up while closing')) },
    { what: 'never ends', reset: () => new Promise<void>(() => undefined) },
  ])('goes on where closing its connections $what', async ({ reset }) => {
    let failures = 0;
    broker.resetSending = reset;
    broker.answer = () => (failures++ < 10 ? new Error('connection lost') : undefined);
    await settled(produce('a', 0, 'v'));
    expect(broker.log.get('a/0')).toEqual(['v']);
  });

  it('tells the offset of each record of a batch, and none where the broker does not', async () => {
    const offsets: [string, number][] = [];
    const tell = (value: string) =>
      queue.produce({ topic: 'a', partition: 0, key: null, value: Buffer.from(value) }, (offset) =>
        offsets.push([value, offset]),
      );
    broker.answer = (batches) => batches.map(() => ({ status: 'stored', baseOffset: 40 }));
    await settled(Promise.all(['u', 'v', 'w'].map(tell)));
    broker.answer = (batches) => batches.map(() => STORED);
    await settled(tell('x'));
    expect(offsets).toEqual([
      ['u', 40],
      ['v', 41],
      ['w', 42],
    ]);
  });

  it('takes no record for stored that the client says nothing of', async () => {
    let calls = 0;
    broker.answer = (batches) => (calls++ === 0 ? [] : batches.map(() => STORED));
    await settled(produce('a', 0, 'v'));
    expect(calls).toBe(2);
  });

  it.each([
    { what: 'a topic that does not exist', topic: 'missing', partition: 0 },
    { what: 'a partition that does not exist', topic: 'a', partition: 3 },
  ])('rejects records for $what, after it had time to appear', async ({ topic, partition }) => {
    const before = performance.now();
    await expect(settled(produce(topic, partition, 'v'))).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    expect(performance.now() - before).toBeGreaterThan(1_000);
    broker.leaderOf.set(topic, [1, 1, 1, 1]);
    await settled(produce(topic, partition, 'now'));
  });

  it('waits for a partition that has no leader just now', async () => {
    broker.leaderOf.set('a', [-1]);
    const waiting = produce('a', 0, 'v');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(broker.requests).toEqual([]);
    broker.leaderOf.set('a', [1]);
    await settled(waiting);
  });

  it('rejects at once what no broker would take', async () => {
    const value = Buffer.alloc(65 * 2 ** 20);
    await expect(queue.produce({ topic: 'a', partition: 0, key: null, value })).rejects.toMatchObject({
      code: 'TOO_LARGE',
    });
    expect(broker.requests).toEqual([]);
  });

  it('keeps batches of one partition below the usual limit, and sends a larger record alone', async () => {
    const sizes = [400_000, 400_000, 400_000, 3_000_000, 10];
    await settled(
      Promise.all(
        sizes.map((size) =>
          queue.produce({ topic: 'a', partition: 0, key: null, value: Buffer.alloc(size) }),
        ),
      ),
    );
    expect(broker.requests.map(([batch]) => batch?.records.map(({ value }) => value?.length))).toEqual([
      [400_000, 400_000],
      [400_000],
      [3_000_000],
      [10],
    ]);
  });

  describe('close', () => {
    it('waits for what was produced, and rejects what comes afterwards', async () => {
      const produced = Array.from({ length: 20 }, (_, i) => produce('a', i % 3, `v${i}`));
      await settled(queue.close(10_000));
      await Promise.all(produced);
      await expect(produce('a', 0, 'late')).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    });

    it('waits no longer than it may, and rejects what is not stored by then', async () => {
      broker.answer = () => new Error('connection lost');
      const stuck = Promise.allSettled([produce('a', 0, 'v'), produce('missing', 0, 'v')]);
      await settled(queue.close(1_000));
      expect(await stuck).toMatchObject([
        { reason: { code: 'BUS_UNAVAILABLE' } },
        { reason: { code: 'BUS_UNAVAILABLE' } },
      ]);
    });
  });
});
