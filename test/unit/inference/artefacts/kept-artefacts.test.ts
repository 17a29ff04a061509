import { createSecretKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { memoryArtefactStore } from '../../../../src/adapters/memory/artefact-store.ts';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { encodeArtefact, type LayerInput } from '../../../../src/inference/artefacts/artefact-codec.ts';
import { KeptArtefacts, type MadeArtefact } from '../../../../src/inference/artefacts/kept-artefacts.ts';
import type { ArtefactStore } from '../../../../src/ports/artefact-store.ts';

const SECRET = createSecretKey(Buffer.from('a secret of the workers'));
const LAYOUT: LayerInput[] = [{ name: 'hidden', datatype: 'FP32', shape: [1, 4] }];
const MIB = 1024 * 1024;
const clock = systemClock();

function made(request: number, value = request): MadeArtefact {
  const identity = { key: Buffer.alloc(32, request), modelDigest: `sha256:${'ab'.repeat(32)}` };
  const contents = Buffer.from(new Float32Array(4).fill(value).buffer);
  return { identity, tensors: [{ name: 'hidden', datatype: 'FP32', shape: [1, 4], contents }] };
}

function keyOf({ identity }: MadeArtefact): string {
  return Buffer.from(identity.key).toString('hex');
}

function kept(store: ArtefactStore) {
  const found: string[] = [];
  const put: string[] = [];
  const artefacts = new KeptArtefacts({
    ...{ store, clock, secret: SECRET, ttlMs: 60_000 },
    onFind: (outcome) => found.push(outcome),
    onKeep: (outcome) => put.push(outcome),
  });
  const find = (all: MadeArtefact[], limitMs = 1_000) =>
    artefacts.find(
      all.map(({ identity }) => identity),
      LAYOUT,
      limitMs,
    );
  return { artefacts, find, found, put };
}

const pause = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));

test('what was kept is found, by its own request alone', async () => {
  const { artefacts, find, found, put } = kept(memoryArtefactStore(clock, MIB));
  artefacts.keep([made(1), made(2)]);
  await pause(20);
  expect(await find([made(2), made(3), made(1)])).toEqual([made(2).tensors, undefined, made(1).tensors]);
  expect([put, found]).toEqual([
    ['kept', 'kept'],
    ['hit', 'missing', 'hit'],
  ]);
});

describe('no request gets anything of a store that', () => {
  const never = new Promise<never>(() => {});
  test.each<[string, Partial<ArtefactStore>, string]>([
    ['rejects', { getMany: () => Promise.reject(new Error('no route')) }, 'unavailable'],
    [
      'throws',
      {
        getMany: () => {
          throw new TypeError('no such command');
        },
      },
      'unavailable',
    ],
    ['never answers, past its own limit', { getMany: () => never }, 'unavailable'],
    ['gives fewer than were asked for', { getMany: async () => [] }, 'unavailable'],
    ['has what is too long', { getMany: async () => [{ state: 'too-long' }] }, 'too-long'],
    ['has something else', { getMany: async () => [{ state: 'no-bytes' }] }, 'no-bytes'],
    [
      "gives another request's",
      {
        getMany: async () => [
          { state: 'found', bytes: encodeArtefact(made(2).identity, made(2).tensors, SECRET) },
        ],
      },
      'key',
    ],
    [
      'gives other numbers',
      {
        getMany: async () => {
          const bytes = encodeArtefact(made(1).identity, made(1).tensors, SECRET);
          bytes.writeFloatLE(1.0001, bytes.length - 36);
          return [{ state: 'found', bytes }];
        },
      },
      'seal',
    ],
    [
      'gives what was made without the secret',
      {
        getMany: async () => [
          {
            state: 'found',
            bytes: encodeArtefact(
              made(1).identity,
              made(1, 9).tensors,
              createSecretKey(Buffer.from('guessed')),
            ),
          },
        ],
      },
      'seal',
    ],
    [
      'gives bytes of anything',
      { getMany: async () => [{ state: 'found', bytes: Buffer.alloc(300) }] },
      'not-an-artefact',
    ],
  ])('%s', async (_what, faults, outcome) => {
    const { find, found } = kept(Object.assign(memoryArtefactStore(clock, MIB), faults));
    const startedMs = clock.monotonicMs();
    expect(await find([made(1)], 50)).toEqual([undefined]);
    expect(found).toEqual([outcome]);
    expect(clock.monotonicMs() - startedMs).toBeLessThan(5_000);
  });

  test('is slow, and it is asked no longer than the request can wait', async () => {
    const store = memoryArtefactStore(clock, MIB);
    const { artefacts, find, found } = kept(store);
    artefacts.keep([made(1)]);
    await pause(20);
    store.delay(200);
    expect(await find([made(1)], 20)).toEqual([undefined]);
    store.delay(0);
    expect(await find([made(1)])).toEqual([made(1).tensors]);
    expect(found).toEqual(['unavailable', 'hit']);
  });
});

test('keeping returns at once, and a store that is full, away or broken is nothing but counted', async () => {
  const away = memoryArtefactStore(clock, MIB);
  away.stop();
  const broken = Object.assign(memoryArtefactStore(clock, MIB), {
    putMany: () => {
      throw new TypeError('no such command');
    },
  });
  for (const store of [memoryArtefactStore(clock, 10), away, broken]) {
    const { artefacts, put } = kept(store);
    expect(artefacts.keep([made(1), made(2)])).toBeUndefined();
    await pause(20);
    expect(put).toEqual(['unavailable', 'unavailable']);
  }
});

test('what is made faster than a store takes it is dropped, and so is what is too long', async () => {
  const sent: string[] = [];
  const store = Object.assign(memoryArtefactStore(clock, MIB), {
    putMany: (entries: readonly { key: string }[]) => {
      sent.push(...entries.map(({ key }) => key));
      return new Promise<never>(() => {});
    },
  });
  const { artefacts, put } = kept(store);
  const large = (request: number, bytes: number): MadeArtefact => ({
    ...made(request),
    tensors: [{ name: 'hidden', datatype: 'FP32', shape: [1, bytes / 4], contents: Buffer.alloc(bytes) }],
  });
  artefacts.keep([large(1, 2 * MIB)]);
  expect(put).toEqual(['dropped']);
  for (let request = 2; request < 12; request += 1) artefacts.keep([large(request, 943_716)]);
  expect(sent).toHaveLength(8);
  expect(sent[0]).toBe(keyOf(made(2)));
  expect(put).toEqual(['dropped', 'dropped', 'dropped']);
  // What nobody answered gives its place back.
  await pause(1_100);
  artefacts.keep([large(20, 943_716)]);
  expect(sent.at(-1)).toBe(keyOf(made(20)));
});
