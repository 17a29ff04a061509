import { expect, test } from 'vitest';
import { memoryArtefactStore } from '../../../../src/adapters/memory/artefact-store.ts';
import { systemClock } from '../../../../src/adapters/system/clock.ts';

const HOUR_MS = 3_600_000;
const entry = (key: string, length: number) => ({ key, bytes: new Uint8Array(length).fill(1) });
const states = async (store: ReturnType<typeof memoryArtefactStore>, keys: string[]) =>
  (await store.getMany(keys, 1_024, 1_000)).map(({ state }) => state);

test('a store in memory holds no more than its bytes: what was put first goes first', async () => {
  const store = memoryArtefactStore(systemClock(), 100);
  for (const key of ['a', 'b', 'c']) await store.putMany([entry(key, 30)], HOUR_MS, 1_000);
  await store.putMany([entry('a', 20)], HOUR_MS, 1_000);
  expect(store.storedBytes).toBe(80);
  await store.putMany([entry('d', 40)], HOUR_MS, 1_000);
  expect(await states(store, ['a', 'b', 'c', 'd'])).toEqual(['found', 'missing', 'found', 'found']);
  expect(store.storedBytes).toBe(90);
});

test('what is put anew counts once', async () => {
  const store = memoryArtefactStore(systemClock(), 100);
  for (const length of [40, 30]) await store.putMany([entry('a', length)], HOUR_MS, 1_000);
  expect(store.storedBytes).toBe(30);
});

test('what is larger than the whole store is refused, and nothing has to go for it', async () => {
  const store = memoryArtefactStore(systemClock(), 100);
  await store.putMany([entry('a', 30)], HOUR_MS, 1_000);
  await expect(store.putMany([entry('b', 101)], HOUR_MS, 1_000)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/full .*got 101; allowed: at most 100/),
  });
  expect(await states(store, ['a'])).toEqual(['found']);
});
