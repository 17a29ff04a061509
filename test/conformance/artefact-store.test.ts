import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { memoryArtefactStore } from '../../src/adapters/memory/artefact-store.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisArtefactStore } from '../../src/adapters/redis/artefact-store.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { artefactStoreSuite, GENEROUS_MS } from './artefact-store.suite.ts';
import { eventually } from './control-store.suite.ts';
import { type FaultyWay, faultyWay, redisUrl, uniquePrefix } from './redis.fixture.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

describe('ArtefactStore in memory', () => {
  artefactStoreSuite(async () => {
    const store = memoryArtefactStore(systemClock(), 16 * MIB);
    return { store, away: async () => store.stop(), back: async () => store.start() };
  });
});

/** A user who may read and not write, as a server that is full lets nobody write: the URL that is theirs. */
async function readersUrl(redis: Redis): Promise<string> {
  const name = uniquePrefix();
  await redis.acl('SETUSER', name, 'on', '>secret', '~*', '&*', '+@all', '-set');
  ends.unshift(async () => void (await redis.acl('DELUSER', name)));
  const url = new URL(redisUrl());
  [url.username, url.password] = [name, 'secret'];
  return url.href;
}

async function onRedis(bytesMax?: number) {
  const way: FaultyWay = await faultyWay(redisUrl());
  const prefix = uniquePrefix();
  const options = { url: way.url, prefix, clock: systemClock(), telemetry: silentTelemetry() };
  const store = redisArtefactStore(bytesMax === undefined ? options : { ...options, bytesMax });
  const redis = new Redis(redisUrl());
  ends.push(
    () => store.close(),
    way.close,
    async () => {
      const keys = await redis.keys(`${prefix}:*`);
      if (keys.length > 0) await redis.del(...keys);
      redis.disconnect();
    },
  );
  return { way, prefix, store, redis };
}

describe('ArtefactStore on Redis', () => {
  artefactStoreSuite(async () => {
    const { way, store } = await onRedis();
    return { store, away: async () => way.drop(), back: async () => way.pass() };
  });

  it('says of a key of another type that it holds no bytes, and reads those beside it', async () => {
    const { store, redis, prefix } = await onRedis();
    await redis.hset(`${prefix}:art:a`, 'field', 'x');
    await store.putMany([{ key: 'b', bytes: Uint8Array.of(1) }], HOUR_MS, GENEROUS_MS);
    const got = await store.getMany(['a', 'b'], 8, GENEROUS_MS);
    expect(got.map(({ state }) => state)).toEqual(['no-bytes', 'found']);
  });

  it('takes no more of what somebody else put than was asked for', async () => {
    const { store, redis, prefix, way } = await onRedis();
    await redis.set(`${prefix}:art:a`, Buffer.alloc(64 * MIB, 'x'));
    const before = way.bytesBack();
    expect(await store.getMany(['a'], 1_024, GENEROUS_MS)).toEqual([{ state: 'too-long' }]);
    expect(way.bytesBack() - before).toBeLessThan(64 * 1_024);
  });

  it('leaves nothing there without an end', async () => {
    const { store, redis, prefix } = await onRedis();
    await store.putMany([{ key: 'a', bytes: Uint8Array.of(1) }], HOUR_MS, GENEROUS_MS);
    const leftMs = await redis.pttl(`${prefix}:art:a`);
    expect(leftMs).toBeGreaterThan(HOUR_MS - GENEROUS_MS);
    expect(leftMs).toBeLessThanOrEqual(HOUR_MS);
  });

  it('says STORE_UNAVAILABLE where the server lets nobody write, and reads on', async () => {
    const { store: other, prefix, redis } = await onRedis();
    const url = await readersUrl(redis);
    const store = redisArtefactStore({ url, prefix, clock: systemClock(), telemetry: silentTelemetry() });
    ends.unshift(() => store.close());
    const entries = [{ key: 'a', bytes: Uint8Array.of(1) }];
    await other.putMany(entries, HOUR_MS, GENEROUS_MS);
    await expect(store.putMany(entries, HOUR_MS, GENEROUS_MS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/refused to keep artefacts .*NOPERM/),
    });
    expect(await store.getMany(['a'], 8, GENEROUS_MS)).toMatchObject([{ state: 'found' }]);
  });

  it('has no more bytes under way than allowed, and gives the places back though no answer ever came', async () => {
    const { store, way } = await onRedis(20);
    const full = ['a', 'b'];
    await store.getMany(full, 9, GENEROUS_MS);
    await expect(store.getMany([...full, 'c'], 9, GENEROUS_MS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/got 30; allowed: at most 20/),
    });
    way.drop();
    await expect(store.getMany(full, 9, 50)).rejects.toMatchObject({
      message: expect.stringMatching(/within 50 ms/),
    });
    await expect(store.getMany(['a'], 9, 50)).rejects.toMatchObject({
      message: expect.stringMatching(/under way/),
    });
    way.pass();
    await eventually('a full read', () =>
      store.getMany(full, 9, 500).then(
        () => true,
        () => false,
      ),
    );
  });
});
