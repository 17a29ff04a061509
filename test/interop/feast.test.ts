import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisFeatureSource } from '../../src/adapters/redis/feature-source.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { freePorts } from '../../src/local-stack/free-port.ts';
import { findPrograms } from '../../src/local-stack/programs.ts';
import { prepareRedis } from '../../src/local-stack/redis.ts';
import type { EntityId, FeatureSource, FeatureView, RowState } from '../../src/ports/feature-source.ts';
import { pythonFlags, pythonWith } from './environments.ts';

const run = promisify(execFile);
const GENEROUS_MS = 30_000;
const PROJECT = 'shop';

/** A feature as Feast itself reads it. */
type Read = number | boolean | number[] | null;
type Rows = Record<string, Read[]>;

const ITEMS: FeatureView = {
  view: 'item_stats',
  joinKey: 'item_id',
  features: ['price', 'weight', 'stock', 'views', 'fresh', 'embedding'],
  width: 9,
};
const USERS: FeatureView = { view: 'user_stats', joinKey: 'user_id', features: ['taste', 'age'], width: 4 };

let written: { items: Rows; users: Rows };
let source: FeatureSource;
let ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const python = await pythonWith('feast');
  const folder = await mkdtemp(join(tmpdir(), 'millrace-feast-'));
  ends.push(() => rm(folder, { recursive: true, force: true }));
  const programs = await findPrograms(process.env, () => undefined);
  const [port = 0] = await freePorts(1);
  const redis = await prepareRedis({
    programs,
    port,
    folder: join(folder, 'redis'),
    lifetime: 'dies-with-parent',
  });
  ends.unshift(() => redis.stop());
  await redis.start();
  const script = join(import.meta.dirname, 'servers/feast_store.py');
  const options = [`--redis=127.0.0.1:${port}`, `--project=${PROJECT}`, `--work=${folder}`];
  const environment = { ...process.env, FEAST_USAGE: 'False' };
  const { stdout } = await run(python, [...pythonFlags(python), script, ...options], { env: environment });
  written = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
  const url = `redis://127.0.0.1:${port}`;
  source = redisFeatureSource({ url, project: PROJECT, clock: systemClock(), telemetry: silentTelemetry() });
  ends.unshift(() => source.close());
});

afterAll(async () => {
  for (const end of ends) await end();
  ends = [];
});

/** What Feast read, as a row of FP32; a row with a null is none. */
function expected(row: readonly Read[], width: number): [RowState, number[]] {
  if (row.includes(null)) return ['missing', Array.from({ length: width }, () => 0)];
  return ['found', row.flat().map((value) => Math.fround(Number(value)))];
}

async function read(of: FeatureView, ids: readonly EntityId[]): Promise<[RowState | undefined, number[]][]> {
  const [rows] = await source.read([{ of, ids }], GENEROUS_MS);
  return ids.map((_, k) => [
    rows?.states[k],
    [...(rows?.values.subarray(k * of.width, (k + 1) * of.width) ?? [])],
  ]);
}

describe("rows of Feast's own online store", () => {
  it.each([
    ['materialised, by numbers', ITEMS, 'items', 40, 2],
    ['pushed, by texts', USERS, 'users', 3, 1],
  ] as const)('are what Feast reads of them: %s', async (_how, of, name, found, missing) => {
    const rows = Object.entries(written[name]);
    const ids = rows.map(([id]) => (name === 'items' ? BigInt(id) : id));
    const got = await read(of, ids);
    expect(got).toEqual(rows.map(([, row]) => expected(row, of.width)));
    const states = got.map(([state]) => state);
    expect(states.filter((state) => state === 'missing')).toHaveLength(missing);
    expect(states.filter((state) => state === 'found')).toHaveLength(rows.length - missing);
    expect(rows).toHaveLength(found + 1);
  });

  it('are stale by the time of their events, which Feast wrote', async () => {
    const ids = Object.keys(written.items).map(BigInt);
    const states = (await read({ ...ITEMS, maxAgeMs: 24 * 3_600_000 }, ids)).map(([state]) => state);
    // One item in four was so two days ago.
    expect(states.filter((state) => state === 'stale')).toHaveLength(10);
    expect(states.filter((state) => state === 'found')).toHaveLength(29);
  });

  it('are invalid where a feature is a text', async () => {
    expect((await read({ ...ITEMS, features: ['title'], width: 1 }, [-20n]))[0]).toEqual(['invalid', [0]]);
  });

  it('are missing in another view', async () => {
    const [id = ''] = Object.keys(written.items);
    expect((await read({ ...ITEMS, view: 'item_state' }, [BigInt(id)]))[0]?.[0]).toBe('missing');
  });
});
