import { describe, expect, it } from 'vitest';
import type { MemoryConnection } from '../../../../src/adapters/memory/bus.ts';
import { memoryControlServer } from '../../../../src/adapters/memory/control-store.ts';
import type { Codecs } from '../../../../src/contracts/codec.ts';
import type { PoolStatus, WorkerWindow } from '../../../../src/contracts/records.ts';
import { topicSpecs } from '../../../../src/contracts/topic-specs.ts';
import type { RecordName } from '../../../../src/contracts/topics.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import { CATALOGUE_SCOPE, writeCatalogue } from '../../../../src/core/model/catalogue.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { InboundRecord } from '../../../../src/ports/message-bus.ts';
import {
  type AcceleratorWorkerConfig,
  type AcceleratorWorkerDeps,
  createAcceleratorWorkerStage,
} from '../../../../src/stages/accelerator-worker/stage.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { publishedModel, sha256 } from '../../core/model/model.fixture.ts';
import { codecs, dispatch, topics } from '../records.fixture.ts';
import { handDrivenLibrary } from './library.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';

const AWAY = {
  family: 'ranker',
  version: '1',
  error: new MillraceError('MODEL_UNAVAILABLE', 'nobody answers at the server'),
};

/** @param folder what became of its versions, of which one is loaded where it is left out; and other codecs */
async function start(
  overrides: Partial<AcceleratorWorkerConfig> = {},
  folder: Partial<Pick<AcceleratorWorkerDeps, 'models' | 'unloaded' | 'codecs'>> = {},
) {
  const world = new MemoryWorld();
  const outside = world.connect();
  await world.settle(
    outside.admin.createTopics(
      topicSpecs({ topics, partitions: 4, replication: 1, pools: new Map([['cpu', 2]]), tenants: [] }),
    ),
  );
  const statuses: (PoolStatus | null)[] = [];
  const windows: WorkerWindow[] = [];
  const results: InboundRecord[] = [];
  await read(outside, topics.fixed('pool-status'), ({ value }) => {
    const decoded = codecs.for('PoolStatus').decode(value);
    statuses.push(decoded.status === 'ok' ? decoded.value : null);
  });
  await read(outside, topics.fixed('latency-metrics'), ({ value }) => {
    const decoded = codecs.for('WorkerWindow').decode(value);
    if (decoded.status === 'ok') windows.push(decoded.value);
  });
  await read(outside, topics.fixed('scored-results'), (record) => results.push(record));
  const model = handDrivenModel();
  const hand = handDrivenLibrary();
  const server = memoryControlServer({ clock: world.clock });
  const open = (worker: string, bus = world.connect(), own = folder) =>
    createAcceleratorWorkerStage(
      {
        worker,
        incarnation: `${worker} life`,
        pool: 'cpu',
        accelerator: 'cpu',
        host: 'machine',
        capacityClass: 'opportunistic',
        slots: [0, 1],
        slotsMax: 4,
        heartbeatMs: 200,
        windowMs: 1_000,
        ackCoalesceMs: 2,
        unacknowledgedMax: 100,
        deadLetterPayload: 'full',
        build: 'test',
        expectedSpeed: 1,
        versionsMax: 8,
        unloadAfterMs: 60_000,
        batchRequestsMax: 4,
        batchCandidatesMax: 100,
        batchMsMax: 1_000,
        batchesInFlightMax: 1,
        featuresWaitMs: 20,
        overload: { slaMs: 0, order: 'strict' },
        tries: 3,
        ...overrides,
      },
      {
        bus,
        codecs,
        topics,
        clock: world.clock,
        random: seededRandom(1),
        telemetry: world.telemetry,
        topicDelay: createTopicDelay(),
        models: [model],
        ...own,
        store: server.connect(),
        library: hand.library,
        digest: sha256,
        backend: {
          capabilities: {
            backend: 'by hand',
            simulated: true,
            kernels: ['dense'],
            memories: ['host'],
            datatypes: ['FP32'],
          },
          failed: new Promise(() => undefined),
          load: (family, version, options) => hand.backend.load(family, version, options),
          close: async () => {},
        },
      },
    );
  const bus = world.connect();
  const stage = await world.settle(open('w1', bus));
  const send = (sequence: number, partition = 0): Promise<void> =>
    outside.produce({
      topic: topics.dispatch('cpu'),
      partition,
      key: null,
      value: codecs.for('Dispatch').encode(dispatch({ sequence, budgetRemainingMs: 60_000 })),
    });
  async function read(
    from: MemoryConnection,
    topic: string,
    onRecord: (record: InboundRecord) => void,
  ): Promise<void> {
    await world.settle(
      from.read({ topics: [topic], startAt: 'earliest' }, (records) => records.forEach(onRecord)),
    );
  }
  /** The catalogue of published versions, as the controller writes it. */
  const catalogue = async (epoch: number, ...versions: string[]): Promise<void> => {
    const text = writeCatalogue({
      versions: versions.map((version) => ({
        model: publishedModel(version),
        publication: Number(version),
        isNamed: false,
        proof: undefined,
      })),
    });
    const store = server.connect();
    await world.settle(store.putDocument(sha256(text), Buffer.from(text)));
    const stable = { digest: sha256(text), name: 'models', version: epoch };
    await world.settle(store.writePointer(CATALOGUE_SCOPE, { epoch, term: 1, stable, canary: undefined }));
  };
  return { world, hand, bus, outside, stage, open, model, statuses, windows, results, send, catalogue };
}

/** Slots of a worker as its last heartbeat says. */
const held = (statuses: readonly (PoolStatus | null)[], worker: string): number[] | undefined =>
  statuses.findLast((status) => status?.worker === worker)?.slots.toSorted();

describe('heartbeats', () => {
  it('tell what the worker is and holds, at once and every period, with a sequence that rises', async () => {
    const { world, statuses } = await start();
    await world.clock.advanceBy(1_050);
    expect(statuses.length).toBeGreaterThanOrEqual(6);
    expect(statuses.at(-1)).toMatchObject({
      pool: 'cpu',
      capacityClass: 'OPPORTUNISTIC',
      worker: 'w1',
      incarnation: 'w1 life',
      accelerator: 'cpu',
      backend: 'by hand',
      simulated: true,
      slots: [0, 1],
      kernels: ['dense'],
      memories: ['host'],
      models: [{ family: 'ranker', version: '1', variant: 'BASELINE' }],
      batchRequests: 4,
    });
    const sequences = statuses.map((status) => status?.sequence ?? 0);
    expect(sequences).toEqual(sequences.map((_, place) => place + 1));
  });

  it('tell of published versions, what became of each', async () => {
    const { world, hand, catalogue, statuses } = await start();
    hand.unloadable.set('ranker@3', new MillraceError('INVALID_MODEL', 'golden case 1 gives NaN'));
    await catalogue(5, '2', '3');
    await world.clock.advanceBy(1_500);
    expect(statuses.at(-1)).toMatchObject({
      catalogueEpoch: 5,
      models: [{ version: '1' }],
      published: [
        { version: '2', status: 'READY', digest: publishedModel('2').digest },
        { version: '3', status: 'FAILED', reason: 'golden case 1 gives NaN' },
      ],
    });
  });

  it('of a worker that takes a slot over come with the slot, not a period later', async () => {
    const { world, stage, open, statuses } = await start({ heartbeatMs: 60_000 });
    await world.settle(open('w2'));
    await world.settle(stage.close());
    await world.clock.advanceBy(5);
    expect(statuses.filter((status) => status?.worker === 'w2').at(-1)?.slots).toEqual([0, 1]);
  });

  it('that are too large are left out, and the next ones come', async () => {
    const codec = codecs.for('PoolStatus');
    let tooLarge = 2;
    const encode = (status: PoolStatus): Buffer => {
      if (tooLarge-- > 0) throw new MillraceError('TOO_LARGE', 'PoolStatus is too large');
      return codec.encode(status);
    };
    const refusing = { headers: codec.headers, encode };
    const { world, stage, statuses } = await start(
      {},
      {
        codecs: {
          for: (name: RecordName) => (name === 'PoolStatus' ? refusing : codecs.for(name)),
          learn: codecs.learn,
        } as unknown as Codecs,
      },
    );
    await world.clock.advanceBy(1_050);
    expect(statuses[0]).toMatchObject({ sequence: 3, slots: [0, 1] });
    expect(statuses.length).toBeGreaterThanOrEqual(4);
    await world.settle(stage.close());
  });

  it('and windows do not pile up while the broker is away', async () => {
    const { world, statuses, windows, stage, send, model } = await start();
    await world.settle(send(1));
    await world.clock.advanceBy(10);
    world.broker.stop();
    model.batches[0]?.end();
    const before = statuses.length;
    await world.clock.advanceBy(60_000);
    world.broker.start();
    await world.clock.advanceBy(100);
    expect(statuses.length - before).toBeLessThanOrEqual(3);
    await world.clock.advanceBy(2_000);
    expect(windows).toMatchObject([{ outcomes: { SCORED: 1 } }]);
    await world.settle(stage.close());
  });
});

describe('a worker that leaves', () => {
  it('lets routers know before it lets its slots go, finishes what runs, and takes its name off the topic', async () => {
    const { world, stage, model, statuses, results, send, windows } = await start();
    await world.settle(send(1));
    await world.clock.advanceBy(10);
    const closing = stage.close();
    await world.clock.advanceBy(10);
    expect(statuses.at(-1)?.slots).toEqual([]);
    expect(results).toEqual([]);
    model.batches[0]?.end();
    await world.settle(closing);
    await world.clock.advanceBy(10);
    expect([results.length, statuses.at(-1), windows.length]).toEqual([1, null, 1]);
    expect(stage.inFlight()).toBe(0);
    const count = statuses.length;
    await world.clock.advanceBy(2_000);
    expect(statuses).toHaveLength(count);
  });

  it('gives what it did not start to the next owner', async () => {
    const { world, stage, open, model, results, send } = await start({ batchRequestsMax: 1 });
    await world.settle(Promise.all([send(1), send(2), send(3, 1)]));
    await world.clock.advanceBy(10);
    await world.settle(open('w2'));
    const closing = stage.close();
    model.batches.shift()?.end();
    await world.settle(closing);
    for (let n = 0; n < 10; n += 1) {
      await world.clock.advanceBy(10);
      model.batches.shift()?.end();
    }
    expect(results).toHaveLength(3);
  });

  it('is gone in time though the broker is away', async () => {
    const { world, stage } = await start();
    world.broker.stop();
    await world.clock.advanceBy(1_000);
    let closed = false;
    stage.close().then(() => {
      closed = true;
    });
    await world.clock.advanceBy(10_000);
    expect(closed).toBe(true);
  });
});

describe('workers that share the slots of their pool', () => {
  it('take all that nobody holds, let go for one that comes, and take over from one that leaves or dies', async () => {
    const { world, stage, open, statuses } = await start({ slots: 'shared' });
    await world.clock.advanceBy(10);
    expect(held(statuses, 'w1')).toEqual([]);
    await world.clock.advanceBy(3_000);
    expect(held(statuses, 'w1')).toEqual([0, 1]);
    const second = await world.settle(open('w2'));
    await world.clock.advanceBy(5_000);
    expect([held(statuses, 'w1'), held(statuses, 'w2')]).toEqual([[0], [1]]);
    const dying = world.connect();
    await world.settle(open('w3', dying));
    await world.clock.advanceBy(5_000);
    expect([held(statuses, 'w1'), held(statuses, 'w2'), held(statuses, 'w3')]).toEqual([[0], [1], []]);
    await world.settle(stage.close());
    await world.clock.advanceBy(5_000);
    expect([held(statuses, 'w2'), held(statuses, 'w3')]).toEqual([[1], [0]]);
    dying.crash();
    await world.clock.advanceBy(30_000);
    expect(held(statuses, 'w2')).toEqual([0, 1]);
    await world.settle(second.close());
  });

  it('answer each request once while slots move', async () => {
    const { world, stage, open, model, results, send } = await start({ slots: 'shared' });
    await world.clock.advanceBy(3_000);
    const end = async (): Promise<void> => {
      await world.clock.advanceBy(200);
      for (const batch of model.batches.splice(0)) batch.end();
    };
    for (let sequence = 1; sequence <= 40; sequence += 1) {
      await world.settle(send(sequence, sequence % 2));
      if (sequence === 10) await world.settle(open('w2'));
      if (sequence === 30) void stage.close();
      await end();
    }
    for (let n = 0; n < 20; n += 1) await end();
    expect(results).toHaveLength(40);
  });

  it('take no slot for vacant while they hear nobody', async () => {
    const { world, open, outside } = await start({ slots: 'shared' });
    await world.clock.advanceBy(3_000);
    await world.settle(open('w2'));
    await world.clock.advanceBy(5_000);
    const claims = (): number =>
      world.telemetry.logs.filter(({ message }) => message.startsWith('claims a slot')).length;
    const before = claims();
    expect(before).toBeGreaterThanOrEqual(3);
    // The broker answers, and nobody's heartbeats come.
    await world.settle(outside.admin.deleteTopics([topics.fixed('pool-status')]));
    await world.clock.advanceBy(20_000);
    expect(claims()).toBe(before);
  });

  it('hold no more than they may', async () => {
    const { world, statuses } = await start({ slots: 'shared', slotsMax: 1 });
    await world.clock.advanceBy(5_000);
    expect(held(statuses, 'w1')).toHaveLength(1);
  });
});

describe('a worker without a model', () => {
  const none = { models: [], unloaded: [AWAY] };

  it.each([
    ['fixed', [0, 1]],
    ['shared', 'shared'],
  ] as const)(
    'is not ready, says why, and holds none of its %s slots; it takes them when it has a model',
    async (_, slots) => {
      const { world, hand, stage, statuses, results, send } = await start({ slots }, none);
      hand.unloadable.set('ranker@1', AWAY.error);
      await world.settle(send(1));
      await world.clock.advanceBy(60_000);
      expect(stage.unready()).toBe('no model version is loaded: ranker@1: nobody answers at the server');
      expect(statuses.every((status) => status?.slots.length === 0 && status.models.length === 0)).toBe(true);
      // nothing was taken that it could only end
      expect([stage.inFlight(), results.length]).toEqual([0, 0]);
      hand.unloadable.clear();
      await world.clock.advanceBy(40_000);
      expect(stage.unready()).toBeUndefined();
      expect(statuses.at(-1)).toMatchObject({ models: [{ family: 'ranker', version: '1' }] });
      expect(held(statuses, 'w1')).toEqual([0, 1]);
      expect(hand.models.get('ranker@1')?.batches).toHaveLength(1);
      await world.settle(stage.close());
    },
  );

  it('says how many reasons there are more, and stays so where trying again cannot help', async () => {
    const error = new MillraceError('INVALID_MODEL', 'golden case 1 gives NaN');
    const unloaded = [
      { family: 'ranker', version: '1', error },
      { ...AWAY, version: '2' },
    ];
    const { world, hand, stage } = await start({}, { models: [], unloaded });
    hand.unloadable.set('ranker@2', error);
    await world.clock.advanceBy(600_000);
    expect(stage.unready()).toBe(
      'no model version is loaded: ranker@1: golden case 1 gives NaN (and 1 more)',
    );
    expect(hand.did.length).toBeLessThanOrEqual(1);
  });

  it.each([
    ['fixed', [0, 1]],
    ['shared', 'shared'],
  ] as const)(
    'is ready with a published version, and lets its %s slots go with the last',
    async (_, slots) => {
      const { world, stage, statuses, catalogue } = await start({ slots }, { models: [] });
      await world.clock.advanceBy(5_000);
      expect(stage.unready()).toMatch(/^no model version is loaded: the model folder has none/);
      await catalogue(1, '2');
      await world.clock.advanceBy(5_000);
      expect([stage.unready(), held(statuses, 'w1')]).toEqual([undefined, [0, 1]]);
      await catalogue(2);
      await world.clock.advanceBy(80_000);
      expect(stage.unready()).toMatch(/^no model version is loaded/);
      expect(held(statuses, 'w1')).toEqual([]);
    },
  );

  it('leaves its fixed slots to a worker that can serve', async () => {
    const { world, hand, open, statuses, send, model, results } = await start({}, none);
    hand.unloadable.set('ranker@1', AWAY.error);
    await world.settle(send(1));
    await world.settle(open('w2', world.connect(), {}));
    await world.clock.advanceBy(1_000);
    expect([held(statuses, 'w1'), held(statuses, 'w2')]).toEqual([[], [0, 1]]);
    model.batches[0]?.end();
    await world.clock.advanceBy(10);
    expect(results).toHaveLength(1);
  });

  it('tries a fixed slot again that it could not take when it had a model', async () => {
    const { world, hand, outside, statuses } = await start({}, none);
    await world.settle(outside.admin.deleteTopics([topics.dispatch('cpu')]));
    await world.clock.advanceBy(5_000);
    expect([hand.did, held(statuses, 'w1')]).toEqual([['load ranker@1'], []]);
    expect(world.telemetry.logs.some(({ message }) => message === 'a slot is tried again')).toBe(true);
    const name = topics.dispatch('cpu');
    await world.settle(outside.admin.createTopics([{ name, partitions: 2, replication: 1, config: {} }]));
    await world.clock.advanceBy(5_000);
    expect(held(statuses, 'w1')).toEqual([0, 1]);
  });

  it('has no share of its pool kept for it', async () => {
    const { world, hand, open, statuses } = await start({ slots: 'shared' }, none);
    hand.unloadable.set('ranker@1', AWAY.error);
    await world.settle(open('w2', world.connect(), {}));
    await world.clock.advanceBy(10_000);
    expect([held(statuses, 'w1'), held(statuses, 'w2')]).toEqual([[], [0, 1]]);
    hand.unloadable.clear();
    await world.clock.advanceBy(40_000);
    expect([held(statuses, 'w1')?.length, held(statuses, 'w2')?.length]).toEqual([1, 1]);
  });
});

describe('workers that share slots beside workers without a model', () => {
  it('share evenly with those that have published versions alone', async () => {
    const { world, open, statuses, catalogue } = await start({ slots: 'shared' }, { models: [] });
    await catalogue(1, '2');
    await world.clock.advanceBy(5_000);
    await world.settle(open('w2'));
    await world.clock.advanceBy(10_000);
    expect([held(statuses, 'w1')?.length, held(statuses, 'w2')?.length]).toEqual([1, 1]);
  });

  it('take no slot for vacant that one of another release holds', async () => {
    const { world, outside, statuses } = await start({ slots: 'shared' });
    const codec = codecs.for('PoolStatus');
    await world.clock.advanceBy(10);
    const [own] = statuses;
    if (own === null || own === undefined) throw new Error('there is no heartbeat');
    world.clock.every(200, () => {
      const status = { ...own, worker: 'old', slots: [0], models: [], published: [] };
      void outside.produce({
        topic: topics.fixed('pool-status'),
        partition: 0,
        key: Buffer.from('old'),
        value: codec.encode(status),
      });
    });
    await world.clock.advanceBy(10_000);
    expect(held(statuses, 'w1')).toEqual([1]);
  });
});

describe('readiness and the work in hand', () => {
  it('say that the broker is away, and how much was taken', async () => {
    const { world, stage, send } = await start();
    await world.settle(send(1));
    await world.clock.advanceBy(10);
    expect([stage.unready(), stage.inFlight()]).toEqual([undefined, 1]);
    world.broker.stop();
    await world.clock.advanceBy(16_000);
    expect(stage.unready()).toBe('the broker last answered 16 s ago');
  });
});
