import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { entityKey, eventField, featureField } from '../../src/adapters/redis/feast-layout.ts';
import { redisFeatureSource } from '../../src/adapters/redis/feature-source.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import type { FeatureSource, FeatureView } from '../../src/ports/feature-source.ts';
import { eventually } from './control-store.suite.ts';
import { writeRows } from './feast-writer.ts';
import { type FaultyWay, faultyWay, redisUrl, uniquePrefix } from './redis.fixture.ts';

const VIEW: FeatureView = { view: 'items', joinKey: 'item_id', features: ['price', 'ctr'], width: 2 };
const GENEROUS_MS = 10_000;
const MIB = 1024 * 1024;

describe('FeatureSource on Redis that holds something else, or misbehaves', () => {
  let way: FaultyWay;
  let project: string;
  let source: FeatureSource;
  let redis: Redis;

  const open = (rowsMax?: number): FeatureSource =>
    redisFeatureSource({
      url: way.url,
      project,
      clock: systemClock(),
      telemetry: silentTelemetry(),
      ...(rowsMax === undefined ? {} : { rowsMax }),
    });
  const ids = (count: number): bigint[] => Array.from({ length: count }, (_, k) => BigInt(k));

  beforeEach(async () => {
    way = await faultyWay(redisUrl());
    project = uniquePrefix();
    source = open();
    redis = new Redis(redisUrl());
  });
  afterEach(async () => {
    await redis.del(...ids(3).map((id) => entityKey('item_id', id, project)));
    redis.disconnect();
    await source.close();
    await way.close();
  });

  it.each<[string, (key: Buffer) => Promise<unknown>]>([
    ['a key of another type', (key) => redis.set(key, 'text')],
    ['no protobuf', (key) => redis.hset(key, featureField('items', 'ctr'), Buffer.from('\xff\xff\xff'))],
    [
      'a value that is cut short',
      (key) => redis.hset(key, featureField('items', 'ctr'), Buffer.of(0x29, 1, 2)),
    ],
    ['a value of 1 MiB', (key) => redis.hset(key, featureField('items', 'ctr'), Buffer.alloc(MIB, 'x'))],
  ])('says invalid of a row that is %s, and reads those beside it', async (_what, spoil) => {
    const rows = ids(3).map((id) => ({
      view: 'items',
      joinKey: 'item_id',
      id,
      features: { price: 1, ctr: 2 },
    }));
    await writeRows(
      redisUrl(),
      project,
      [rows[0], rows[1], rows[2]].flatMap((row, k) => (row && k !== 1 ? [row] : [])),
    );
    const key = entityKey('item_id', 1n, project);
    await redis.hset(key, featureField('items', 'price'), Buffer.of(0x20, 5));
    if (_what.includes('type')) await redis.del(key);
    await spoil(key);
    const [read] = await source.read([{ of: VIEW, ids: ids(3) }], GENEROUS_MS);
    expect(read?.states).toEqual(['found', 'invalid', 'found']);
    expect([...(read?.values ?? [])]).toEqual([1, 2, 0, 0, 1, 2]);
  });

  it('says stale of a row whose time of event cannot be read', async () => {
    const features = { price: 1, ctr: 2 };
    await writeRows(redisUrl(), project, [{ view: 'items', joinKey: 'item_id', id: 1n, features }]);
    await redis.hset(entityKey('item_id', 1n, project), eventField('items'), 'yesterday');
    const [read] = await source.read([{ of: { ...VIEW, maxAgeMs: 1_000 }, ids: [1n] }], GENEROUS_MS);
    expect(read?.states).toEqual(['stale']);
  });

  it('takes no more than a bounded number of bytes of rows that somebody else filled, and works again', async () => {
    const key = entityKey('item_id', 1n, project);
    await redis.hset(key, featureField('items', 'ctr'), Buffer.alloc(128 * MIB, 'x'));
    const before = way.bytesBack();
    await expect(source.read([{ of: VIEW, ids: [1n] }], GENEROUS_MS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    expect(way.bytesBack() - before).toBeLessThan(64 * MIB);
    await eventually('it answers again', () =>
      source.read([{ of: VIEW, ids: [2n] }], 500).then(
        ([rows]) => rows?.states[0] === 'missing',
        () => false,
      ),
    );
  });

  it('has no more rows under way than allowed, and takes others once those have come', async () => {
    await source.close();
    source = open(10);
    await source.read([{ of: VIEW, ids: ids(10) }], GENEROUS_MS);
    await expect(source.read([{ of: VIEW, ids: ids(11) }], GENEROUS_MS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/got 11; allowed: at most 10/),
    });
    const first = source.read([{ of: VIEW, ids: ids(6) }], GENEROUS_MS);
    await expect(source.read([{ of: VIEW, ids: ids(6) }], GENEROUS_MS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    await first;
    // An id that is asked for twice is one row.
    expect(
      (await source.read([{ of: VIEW, ids: [...ids(10), ...ids(10)] }], GENEROUS_MS))[0]?.states,
    ).toHaveLength(20);
  });

  it('ends a read at its limit, and gives the places back though no answer ever came', async () => {
    await source.close();
    source = open(10);
    await source.read([{ of: VIEW, ids: [1n] }], GENEROUS_MS);
    way.drop();
    await expect(source.read([{ of: VIEW, ids: ids(10) }], 50)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/within 50 ms/),
    });
    way.pass();
    await eventually('a full read', () =>
      source.read([{ of: VIEW, ids: ids(10) }], 500).then(
        () => true,
        () => false,
      ),
    );
  });

  it('can be made while Redis is away', async () => {
    await way.shut();
    const early = open();
    await expect(early.read([{ of: VIEW, ids: [1n] }], 500)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    await way.open();
    await eventually('it answers', () =>
      early.read([{ of: VIEW, ids: [1n] }], 500).then(
        () => true,
        () => false,
      ),
    );
    await early.close();
  });
});
