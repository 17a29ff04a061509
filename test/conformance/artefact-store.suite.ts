import { describe, expect, it } from 'vitest';
import {
  ARTEFACT_BYTES_MAX,
  ARTEFACTS_OF_CALL_MAX,
  type ArtefactStore,
} from '../../src/ports/artefact-store.ts';
import { eventually } from './control-store.suite.ts';

export interface ArtefactStoreCase {
  store: ArtefactStore;
  /** From now on nothing is answered, until `back`. */
  away(): Promise<void>;
  back(): Promise<void>;
}

export const GENEROUS_MS = 10_000;
const HOUR_MS = 3_600_000;
const KIB = 1_024;

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, k) => (k * 31 + seed * 97) % 256);

/** What every adapter of the port does. */
export function artefactStoreSuite(open: () => Promise<ArtefactStoreCase>): void {
  it.each<[string, Uint8Array]>([
    ['one byte', bytesOf(1)],
    ['a zero', Uint8Array.of(0)],
    ['what is no UTF-8', Uint8Array.of(0xff, 0xfe, 0x00, 0xc3, 0x28)],
    ['as many as allowed', bytesOf(ARTEFACT_BYTES_MAX)],
  ])('gives back the bytes that were put: %s', async (_what, bytes) => {
    const { store } = await open();
    await store.putMany([{ key: 'a', bytes }], HOUR_MS, GENEROUS_MS);
    const [got] = await store.getMany(['a'], ARTEFACT_BYTES_MAX, GENEROUS_MS);
    expect(got?.state).toBe('found');
    expect(got?.state === 'found' && Buffer.compare(got.bytes, bytes)).toBe(0);
  });

  it('gives each key its own, in the order of the keys, however often one is there', async () => {
    const { store } = await open();
    const entries = ['a', 'b', 'ä🦆'].map((key, k) => ({ key, bytes: bytesOf(8, k) }));
    await store.putMany(entries, HOUR_MS, GENEROUS_MS);
    const got = await store.getMany(['ä🦆', 'nobody', 'a', 'b', 'a'], KIB, GENEROUS_MS);
    expect(got.map((one) => (one.state === 'found' ? [...one.bytes] : one.state))).toEqual(
      [bytesOf(8, 2), 'missing', bytesOf(8, 0), bytesOf(8, 1), bytesOf(8, 0)].map((one) =>
        typeof one === 'string' ? one : [...one],
      ),
    );
  });

  it('has nothing to do for no keys and no entries', async () => {
    const { store } = await open();
    await store.putMany([], HOUR_MS, GENEROUS_MS);
    expect(await store.getMany([], KIB, GENEROUS_MS)).toEqual([]);
  });

  it('keeps what was put last, whatever becomes of the memory that it was put from', async () => {
    const { store } = await open();
    const bytes = bytesOf(8, 2);
    await store.putMany([{ key: 'a', bytes: bytesOf(64) }], HOUR_MS, GENEROUS_MS);
    await store.putMany([{ key: 'a', bytes }], HOUR_MS, GENEROUS_MS);
    bytes.fill(0);
    const [got] = await store.getMany(['a'], KIB, GENEROUS_MS);
    expect(got?.state === 'found' && [...got.bytes]).toEqual([...bytesOf(8, 2)]);
  });

  it('says of what is longer than asked for that it is, and gives those beside it', async () => {
    const { store } = await open();
    await store.putMany(
      [8, 9].map((length) => ({ key: `of ${length}`, bytes: bytesOf(length) })),
      HOUR_MS,
      GENEROUS_MS,
    );
    const got = await store.getMany(['of 8', 'of 9'], 8, GENEROUS_MS);
    expect(got.map(({ state }) => state)).toEqual(['found', 'too-long']);
  });

  it('forgets what has had its time, and not what was put anew', async () => {
    const { store } = await open();
    await store.putMany(
      ['short', 'renewed'].map((key) => ({ key, bytes: bytesOf(8) })),
      50,
      GENEROUS_MS,
    );
    await store.putMany([{ key: 'renewed', bytes: bytesOf(8) }], HOUR_MS, GENEROUS_MS);
    await eventually('it is forgotten', async () => {
      const [short] = await store.getMany(['short'], KIB, GENEROUS_MS);
      return short?.state === 'missing';
    });
    const [renewed] = await store.getMany(['renewed'], KIB, GENEROUS_MS);
    expect(renewed?.state).toBe('found');
  });

  describe('refuses what is out of range, and stores nothing of it', () => {
    it.each<[string, number[], number]>([
      ['an empty artefact', [8, 0], HOUR_MS],
      ['one too long', [8, ARTEFACT_BYTES_MAX + 1], HOUR_MS],
      ['no time', [8], 0],
      ['a time that is no number', [8], Number.NaN],
      ['a part of a millisecond', [8], 1.5],
      ['a month', [8], 30 * 24 * HOUR_MS],
      ['too many at once', new Array<number>(ARTEFACTS_OF_CALL_MAX + 1).fill(1), HOUR_MS],
    ])('%s', async (_what, lengths, ttlMs) => {
      const { store } = await open();
      const entries = lengths.map((length, k) => ({ key: `${k}`, bytes: bytesOf(length) }));
      await expect(store.putMany(entries, ttlMs, GENEROUS_MS)).rejects.toMatchObject({ code: 'TOO_LARGE' });
      expect(await store.getMany(['0'], KIB, GENEROUS_MS)).toEqual([{ state: 'missing' }]);
    });

    it.each<[string, number, number]>([
      ['too many keys', ARTEFACTS_OF_CALL_MAX + 1, KIB],
      ['more bytes than an artefact may have', 1, ARTEFACT_BYTES_MAX + 1],
      ['no bytes', 1, 0],
    ])('%s', async (_what, keys, bytesMax) => {
      const { store } = await open();
      const names = Array.from({ length: keys }, (_, k) => `${k}`);
      await expect(store.getMany(names, bytesMax, GENEROUS_MS)).rejects.toMatchObject({ code: 'TOO_LARGE' });
    });
  });

  it('says STORE_UNAVAILABLE while it is away, within the limit, and works again afterwards', async () => {
    const { store, away, back } = await open();
    const entries = [{ key: 'a', bytes: bytesOf(8) }];
    await store.putMany(entries, HOUR_MS, GENEROUS_MS);
    await away();
    const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true };
    await expect(store.getMany(['a'], KIB, 100)).rejects.toMatchObject(unavailable);
    await expect(store.putMany(entries, HOUR_MS, 100)).rejects.toMatchObject(unavailable);
    await back();
    await eventually('it answers', () =>
      store.getMany(['a'], KIB, 500).then(
        ([got]) => got?.state === 'found',
        () => false,
      ),
    );
  });

  it('refuses every call once it is closed', async () => {
    const { store } = await open();
    await store.close();
    await expect(store.getMany(['a'], KIB, 500)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
}
