import { describe, expect, it } from 'vitest';
import {
  type MemoryFeatureSource,
  memoryFeatureSource,
} from '../../../../src/adapters/memory/feature-source.ts';
import {
  type Dispatch,
  makeTensor,
  type ScoreRequest,
  type Tensor,
} from '../../../../src/contracts/records.ts';
import type { FeatureQuery, FeatureSource, SourcedInput } from '../../../../src/ports/feature-source.ts';
import { codecs, endings, onlyResult, scoreRequest } from '../records.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';
import { startWorker, type WorkerOptions } from './worker.fixture.ts';

const ITEM: SourcedInput = {
  input: 'item',
  side: 'candidate',
  rowShape: [2],
  of: { view: 'items', joinKey: 'item_id', features: ['price', 'ctr'], width: 2, maxAgeMs: 60_000 },
  ids: 'INT64',
  idFrom: 'candidateIds',
  missing: 'default',
  defaultRow: Float32Array.of(-1, -2),
};
const USER: SourcedInput = {
  input: 'user',
  side: 'request',
  rowShape: [3],
  of: { view: 'users', joinKey: 'user_id', features: ['taste'], width: 3 },
  ids: 'STRING',
  idFrom: 'context.user',
  missing: 'default',
  defaultRow: new Float32Array(3),
};

function numberIds(...ids: bigint[]): Tensor {
  const contents = Buffer.from(BigInt64Array.from(ids).buffer);
  return makeTensor({ name: 'ids', datatype: 'INT64', shape: [ids.length], contents });
}

function textIds(...ids: string[]): Tensor {
  const contents = Buffer.concat(
    ids.map((id) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(id));
      return Buffer.concat([length, Buffer.from(id)]);
    }),
  );
  return makeTensor({ name: 'ids', datatype: 'BYTES', shape: [ids.length], contents });
}

function floats(name: string, shape: number[], ...values: number[]): Tensor {
  const contents = Buffer.from(Float32Array.from(values).buffer);
  return makeTensor({ name, datatype: 'FP32', shape, contents });
}

function start(sources: readonly SourcedInput[] = [ITEM, USER], options: WorkerOptions = {}) {
  const stores: MemoryFeatureSource[] = [];
  const reads: FeatureQuery[][] = [];
  const model = handDrivenModel({ sources });
  const world = startWorker({
    model,
    features: (clock): FeatureSource => {
      const store = memoryFeatureSource(clock);
      stores.push(store);
      const read: FeatureSource['read'] = (queries, limitMs) => {
        reads.push([...queries]);
        return store.read(queries, limitMs);
      };
      return { read, close: store.close };
    },
    ...options,
  });
  const [store = memoryFeatureSource(world.clock)] = stores;
  const now = world.clock.wallMs();
  for (const id of [1n, 2n, 3n])
    store.put({
      ...{ view: 'items', joinKey: 'item_id', id, eventMs: now },
      features: { price: Number(id), ctr: Number(id) / 2 },
    });
  store.put({
    view: 'items',
    joinKey: 'item_id',
    id: 4n,
    features: { price: 4, ctr: 2 },
    eventMs: now - 60_001,
  });
  store.put({ view: 'items', joinKey: 'item_id', id: 5n, features: { price: 'x', ctr: 2 }, eventMs: now });
  store.put({ view: 'users', joinKey: 'user_id', id: 'ann', features: { taste: [0.5, 0.25, 0] } });
  const ask = (request: Partial<ScoreRequest>, fields: Partial<Dispatch> = {}) =>
    world.take({ payload: codecs.for('ScoreRequest').encode(scoreRequest(request)), ...fields });
  const defaults = (reason: string): number =>
    world.telemetry.value('millrace_default_rows_total', { pool: 'cpu', model: 'ranker', reason });
  return { ...world, model, store, reads, ask, defaults };
}

const ANN = { context: { user: 'ann' }, candidateIds: numberIds(2n, 1n) };

/** Name, shape and values of the tensors of the first batch's item. */
function packed({ model }: { model: ReturnType<typeof handDrivenModel> }, batch = 0) {
  const [item] = model.batches[batch]?.items ?? [];
  const values = ({ name, shape, contents }: Tensor) => [
    name,
    shape,
    [...new Float32Array(contents.buffer.slice(contents.byteOffset, contents.byteOffset + contents.length))],
  ];
  return [...(item?.requestTensors ?? []), ...(item?.candidateTensors ?? [])].map((one) =>
    values(one as Tensor),
  );
}

describe('rows that a request does not send', () => {
  it('are read before it is scored, and the result names the views', async () => {
    const world = start();
    const taken = world.ask(ANN);
    await world.turn();
    expect(packed(world)).toEqual([
      ['user', [3], [0.5, 0.25, 0]],
      ['item', [2, 2], [2, 1, 1, 0.5]],
    ]);
    world.model.batches[0]?.end();
    await world.turn();
    expect(onlyResult(taken)).toMatchObject({
      outcome: 'SCORED',
      featureViews: 'items,users',
      defaultRows: 0,
    });
  });

  it.each<[string, Partial<ScoreRequest>, unknown[]]>([
    [
      'those that were sent win',
      { ...ANN, candidateTensors: [floats('item', [2, 2], 9, 9, 9, 9)] },
      [
        ['user', [3], [0.5, 0.25, 0]],
        ['item', [2, 2], [9, 9, 9, 9]],
      ],
    ],
    [
      'of candidates beyond those that are scored none is read',
      { ...ANN, candidateIds: numberIds(2n, 1n, 3n), candidateTensors: [floats('other', [3, 1], 1, 2, 3)] },
      [
        ['user', [3], [0.5, 0.25, 0]],
        ['other', [3, 1], [1, 2, 3]],
        ['item', [3, 2], [2, 1, 1, 0.5, 0, 0]],
      ],
    ],
    [
      'a number and its text are one id',
      { ...ANN, candidateIds: textIds('3', 'three') },
      [
        ['user', [3], [0.5, 0.25, 0]],
        ['item', [2, 2], [3, 1.5, -1, -2]],
      ],
    ],
    [
      'a default row stands in for what is missing, stale or no number',
      { context: { user: 'bob' }, candidateIds: numberIds(4n, 5n) },
      [
        ['user', [3], [0, 0, 0]],
        ['item', [2, 2], [-1, -2, -1, -2]],
      ],
    ],
  ])('%s', async (_what, request, tensors) => {
    const world = start();
    world.ask(request);
    await world.turn();
    expect(packed(world)).toEqual(tensors);
  });

  it('are found by the decimal text of a number where the store has texts', async () => {
    const world = start([{ ...ITEM, ids: 'STRING' }]);
    const features = { price: 7, ctr: 8 };
    world.store.put({ view: 'items', joinKey: 'item_id', id: '1', features, eventMs: world.clock.wallMs() });
    world.ask({ candidateIds: numberIds(1n, 2n) });
    await world.turn();
    expect(packed(world)).toEqual([['item', [2, 2], [7, 8, -1, -2]]]);
  });

  it('are counted by why a default row stands in', async () => {
    const world = start();
    const taken = world.ask({ context: { user: 'bob' }, candidateIds: numberIds(4n, 5n) });
    await world.turn();
    world.model.batches[0]?.end();
    await world.turn();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'SCORED', defaultRows: 3 });
    expect(['missing', 'stale', 'invalid', 'unavailable'].map(world.defaults)).toEqual([1, 1, 1, 0]);
  });

  it.each<[string, SourcedInput, Partial<ScoreRequest>, string, RegExp]>([
    [
      'no row',
      ITEM,
      { candidateIds: numberIds(1n, 9n) },
      'NO_FEATURES',
      /items has no row for item_id \(got "9"\)/,
    ],
    ['a stale row', ITEM, { candidateIds: numberIds(4n, 1n) }, 'NO_FEATURES', /young enough .*"4"/],
    ['a row of text', ITEM, { candidateIds: numberIds(5n, 1n) }, 'NO_FEATURES', /of numbers .*"5"/],
    [
      'no row of the user',
      USER,
      { context: { user: 'bob' } },
      'NO_FEATURES',
      /users has no row for user_id \(got "bob"\)/,
    ],
  ])('refuse the request where the model says so: %s', async (_what, source, request, code, message) => {
    const world = start([{ ...source, missing: 'reject' }]);
    const taken = world.ask(request);
    const beside = world.ask(ANN);
    await world.turn();
    world.model.batches[0]?.end();
    await world.turn();
    const { outcome, reason } = onlyResult(taken);
    expect([outcome, reason?.code]).toEqual(['REJECTED', code]);
    expect(reason?.message).toMatch(message);
    expect(onlyResult(beside)).toMatchObject({ outcome: 'SCORED' });
  });

  it.each<[string, SourcedInput, Partial<ScoreRequest>, RegExp]>([
    ['no ids', ITEM, { candidateIds: null }, /item, or candidateIds/],
    ['too few ids', ITEM, { candidateIds: numberIds(1n) }, /too few ids/],
    ['no such context', USER, { context: { device: 'ann' } }, /user, or context\.user/],
    ['no bucket key', { ...USER, idFrom: 'bucketKey' }, { bucketKey: null }, /user, or bucketKey/],
  ])('refuse the request that has %s for them', async (_what, source, request, message) => {
    const world = start([source]);
    const taken = world.ask(request);
    await world.turn();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'REJECTED', reason: { code: 'INVALID_TENSOR' } });
    expect(onlyResult(taken).reason?.message).toMatch(message);
    expect(world.model.batches).toHaveLength(0);
  });

  it('are read together for all that came in one turn, and not for those that need none', async () => {
    const world = start();
    world.ask(ANN);
    world.ask({ context: { user: 'bob' }, candidateIds: numberIds(3n, 1n) });
    world.ask({
      requestTensors: [floats('user', [3], 1, 2, 3)],
      candidateTensors: [floats('item', [2, 2], 1, 2, 3, 4)],
    });
    world.ask({ candidateIds: null }, { scoreLimit: 0, baselineCandidates: 0 });
    await world.turn();
    expect(world.reads.map((queries) => queries.map(({ ids }) => ids))).toEqual([
      [[2n, 1n], ['ann'], [3n, 1n], ['bob']],
    ]);
    expect(world.model.batches[0]?.items).toHaveLength(2);
    world.model.batches[0]?.end();
    await world.turn();
    expect(world.model.batches[1]?.items).toHaveLength(2);
  });
});

describe('a store that is slow', () => {
  it('holds up nothing but the request that waits for it, and that no longer than it may', async () => {
    const world = start();
    world.store.delay(1_000);
    const waiting = world.ask(ANN);
    const beside = world.ask({
      requestTensors: [floats('user', [3], 1, 2, 3)],
      candidateTensors: [floats('item', [2, 2], 1, 2, 3, 4)],
    });
    await world.turn();
    world.model.batches[0]?.end();
    await world.turn();
    expect(onlyResult(beside)).toMatchObject({ outcome: 'SCORED', featureViews: '', defaultRows: 0 });
    expect(world.worker.load()).toMatchObject({ queued: 1 });
    expect(world.worker.isUsing(world.model)).toBe(true);
    await world.clock.advanceBy(19);
    expect(world.model.batches).toHaveLength(1);
    await world.clock.advanceBy(1);
    expect(packed(world, 1)).toEqual([
      ['user', [3], [0, 0, 0]],
      ['item', [2, 2], [-1, -2, -1, -2]],
    ]);
    world.model.batches[1]?.end();
    await world.turn();
    expect(onlyResult(waiting)).toMatchObject({
      outcome: 'SCORED',
      defaultRows: 3,
      featureViews: 'items,users',
    });
    expect(world.defaults('unavailable')).toBe(3);
    expect(world.worker.isUsing(world.model)).toBe(false);
    // What comes too late changes nothing.
    await world.clock.advanceBy(2_000);
    expect(endings(waiting)).toBe(1);
  });

  it('leaves a request the time that it is computed in', async () => {
    const world = start();
    world.store.delay(1_000);
    world.ask(ANN, { budgetMs: 30, budgetRemainingMs: 14, predictedMs: 4 });
    await world.clock.advanceBy(9);
    expect(world.model.batches).toHaveLength(0);
    await world.clock.advanceBy(1);
    expect(world.model.batches).toHaveLength(1);
  });

  it('is asked for a few reads at once; those after them wait for their turn, and go on without rows in time', async () => {
    const world = start();
    world.store.delay(15);
    for (let k = 0; k < 6; k += 1) {
      world.ask(ANN);
      await world.turn();
    }
    expect(world.reads).toHaveLength(4);
    await world.clock.advanceBy(15);
    // Both that waited are read at once.
    expect(world.reads.map(({ length }) => length)).toEqual([2, 2, 2, 2, 4]);
    await world.clock.advanceBy(5);
    expect(world.defaults('unavailable')).toBe(6);
  });

  it('is not asked for rows that nobody waits for any more', async () => {
    const world = start();
    world.store.delay(15);
    for (const budgetRemainingMs of [100, 100, 100, 100, 14]) {
      world.ask(ANN, { budgetRemainingMs, predictedMs: 4 });
      await world.turn();
    }
    await world.clock.advanceBy(30);
    expect(world.reads).toHaveLength(4);
    expect(world.defaults('unavailable')).toBe(3);
  });

  it('is not waited for by who lost its slot', async () => {
    const world = start();
    world.store.delay(10);
    const taken = world.ask(ANN);
    await world.turn();
    world.worker.abandon(() => true);
    await world.clock.advanceBy(100);
    expect(taken.abandonments).toBe(1);
    expect(endings(taken)).toBe(1);
    expect(world.worker.load()).toMatchObject({ queued: 0, queuedPredictedMs: 0 });
    expect(world.model.batches).toHaveLength(0);
  });
});

describe('a store that is away', () => {
  it.each<[string, Partial<WorkerOptions>]>([
    ['gives no answer', {}],
    ['was never named', { features: undefined as never }],
    [
      'has a client that breaks',
      { features: () => ({ read: () => Promise.reject(new TypeError('broken')), close: async () => {} }) },
    ],
    ['answers less than it was asked', { features: () => ({ read: async () => [], close: async () => {} }) }],
  ])(
    'and %s: default rows stand in, or the request is refused, as the model says',
    async (_what, options) => {
      for (const missing of ['default', 'reject'] as const) {
        const world = start([{ ...USER, missing }], options);
        world.store.stop();
        const taken = world.ask({ context: { user: 'ann' } });
        await world.turn();
        world.model.batches[0]?.end();
        await world.turn();
        expect(onlyResult(taken)).toMatchObject(
          missing === 'default'
            ? { outcome: 'SCORED', defaultRows: 1 }
            : { outcome: 'REJECTED', reason: { code: 'STORE_UNAVAILABLE', retryable: true } },
        );
      }
    },
  );
});
