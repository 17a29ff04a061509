import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryLastKnownGood } from '../../../../src/adapters/memory/last-known-good.ts';
import { type SilentTelemetry, silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { fileLastKnownGood } from '../../../../src/adapters/system/last-known-good.ts';
import { COUNT_MAX } from '../../../../src/ports/control-store.ts';
import type { KnownGood, LastKnownGood } from '../../../../src/ports/last-known-good.ts';

const SCOPE = 'policy/feed-router';

function good(epoch: number, text = `policy ${epoch}`): KnownGood {
  const stable = { digest: `sha256:${epoch}`, name: 'feed-router', version: epoch };
  return {
    pointer: { epoch, term: 2, stable, canary: undefined },
    documents: new Map([[stable.digest, new Uint8Array(Buffer.from(text))]]),
    envelopes: new Map(),
    revokedKeys: [],
  };
}

function goodWithCanary(epoch: number): KnownGood {
  const { pointer, documents } = good(epoch);
  const policy = { digest: 'sha256:c', name: 'feed-router', version: 9 };
  return {
    pointer: {
      ...pointer,
      canary: {
        policy,
        mode: 'shadow',
        percent: 2.5,
        salt: 's',
        unit: 'requestId',
        leaseMs: 60_000,
        beat: 4,
      },
    },
    documents: new Map([...documents, [policy.digest, Uint8Array.from({ length: 256 }, (_, byte) => byte)]]),
    envelopes: new Map([[policy.digest, Uint8Array.from([1, 0, 255])]]),
    revokedKeys: ['ana-2025'],
  };
}

let folder: string;
let telemetry: SilentTelemetry;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-state-'));
  telemetry = silentTelemetry();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (): LastKnownGood => fileLastKnownGood({ folder, logger: telemetry.logger });
const file = (generation: 'current' | 'previous'): string =>
  join(folder, `policy%2Ffeed-router.${generation}.json`);
const epochsOf = async (kept: LastKnownGood): Promise<number[]> =>
  (await kept.load(SCOPE)).map(({ pointer }) => pointer.epoch);

describe.each<[string, () => LastKnownGood]>([
  ['memory', memoryLastKnownGood],
  ['disk', open],
])('what is kept in %s', (_name, create) => {
  it('is nothing at first', async () => {
    expect(await create().load(SCOPE)).toEqual([]);
  });

  it('comes back byte for byte, the newest of two generations first', async () => {
    const kept = create();
    for (const each of [good(1), good(2), goodWithCanary(5)]) await kept.save(SCOPE, each);
    expect(await kept.load(SCOPE)).toEqual([goodWithCanary(5), good(2)]);
    expect(await kept.load('policy/other')).toEqual([]);
  });

  it('is not replaced by the same epoch or an older one', async () => {
    const kept = create();
    await kept.save(SCOPE, good(4));
    await kept.save(SCOPE, good(4, 'another'));
    await kept.save(SCOPE, good(3));
    expect(await kept.load(SCOPE)).toEqual([good(4)]);
  });

  it('is not changed by whoever gave it, or got it', async () => {
    const kept = create();
    const given = good(1);
    await kept.save(SCOPE, given);
    given.documents.get('sha256:1')?.fill(0);
    const [got] = await kept.load(SCOPE);
    got?.documents.get('sha256:1')?.fill(1);
    expect(await kept.load(SCOPE)).toEqual([good(1)]);
  });
});

describe('on disk', () => {
  it('it outlives the process, and routers of one machine may share it', async () => {
    await open().save(SCOPE, good(1));
    const routers = [open(), open(), open()];
    await Promise.all(routers.map((router) => router.save(SCOPE, good(2))));
    await open().save(SCOPE, good(3));
    expect(await epochsOf(open())).toEqual([3, 2]);
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('it makes its folder', async () => {
    const kept = fileLastKnownGood({ folder: join(folder, 'a', 'b'), logger: telemetry.logger });
    await kept.save(SCOPE, good(1));
    expect(await kept.load(SCOPE)).toEqual([good(1)]);
  });

  it.each<[string, (path: string) => void]>([
    ['empty', (path) => truncateSync(path, 0)],
    ['cut short', (path) => truncateSync(path, 100)],
    ['of other bytes', (path) => writeFileSync(path, Buffer.alloc(500, 7))],
    [
      'changed in one place',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"epoch":2', '"epoch":9')),
    ],
    ['far too large', (path) => writeFileSync(path, Buffer.alloc(2_000_000, 32))],
    ['missing', (path) => rmSync(path)],
  ])('the one before is there where the newest is %s, and is kept by the next save', async (what, damage) => {
    await open().save(SCOPE, good(1));
    await open().save(SCOPE, good(2));
    damage(file('current'));
    expect(await epochsOf(open())).toEqual([1]);
    expect(telemetry.logs.filter(({ level }) => level === 'error')).toHaveLength(what === 'missing' ? 0 : 1);
    await open().save(SCOPE, good(3));
    expect(await epochsOf(open())).toEqual([3, 1]);
  });

  it('an epoch that nobody counts to is none: the one before is there', async () => {
    await open().save(SCOPE, good(1));
    const { pointer, ...rest } = good(2);
    await open().save(SCOPE, { ...rest, pointer: { ...pointer, epoch: COUNT_MAX + 1 } });
    expect(await epochsOf(open())).toEqual([1]);
  });

  it('nothing is there where both are corrupt, and nobody stumbles', async () => {
    await open().save(SCOPE, good(1));
    await open().save(SCOPE, good(2));
    for (const generation of ['current', 'previous'] as const) writeFileSync(file(generation), '{}');
    expect(await open().load(SCOPE)).toEqual([]);
  });

  it('no damage of any kind makes anything else of it than what was saved', async () => {
    await open().save(SCOPE, goodWithCanary(3));
    const whole = readFileSync(file('current'));
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: whole.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const damaged = Buffer.from(whole);
          damaged[at] = (damaged[at] ?? 0) ^ flip;
          writeFileSync(file('current'), damaged);
          const loaded = await open().load(SCOPE);
          if (loaded.length > 0) expect(loaded).toEqual([goodWithCanary(3)]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('says STORE_UNAVAILABLE where it cannot be written, and leaves nothing half done', async () => {
    const taken = join(folder, 'taken');
    writeFileSync(taken, 'a file, not a folder');
    const kept = fileLastKnownGood({ folder: taken, logger: telemetry.logger });
    await expect(kept.save(SCOPE, good(1))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await kept.load(SCOPE)).toEqual([]);
  });
});
