import { describe, expect, it } from 'vitest';
import type { StoredRow } from '../../src/adapters/memory/feature-source.ts';
import type { FeatureSource, FeatureView, RowState } from '../../src/ports/feature-source.ts';
import { eventually } from './control-store.suite.ts';

export interface FeatureSourceCase {
  source: FeatureSource;
  put(rows: readonly StoredRow[]): Promise<void>;
  /** From now on nothing is answered, until `back`. */
  away(): Promise<void>;
  back(): Promise<void>;
}

export const GENEROUS_MS = 10_000;
const NOW_MS = Date.now();
const VIEW: FeatureView = { view: 'items', joinKey: 'item_id', features: ['price', 'ctr'], width: 2 };
const row = (id: StoredRow['id'], features: StoredRow['features'], eventMs?: number): StoredRow => ({
  ...{ view: 'items', joinKey: 'item_id', id, features },
  eventMs,
});

/** What every adapter of the port does. */
export function featureSourceSuite(open: () => Promise<FeatureSourceCase>): void {
  const readOne = async (
    stored: readonly StoredRow[],
    of: FeatureView,
    id: StoredRow['id'] = 7n,
  ): Promise<[RowState | undefined, number[]]> => {
    const { source, put } = await open();
    await put(stored);
    const [rows] = await source.read([{ of, ids: [id] }], GENEROUS_MS);
    return [rows?.states[0], [...(rows?.values ?? [])]];
  };

  describe('a row', () => {
    it.each<[string, StoredRow['features'], RowState, number[]]>([
      ['two floats', { price: 1.5, ctr: -0.25 }, 'found', [1.5, -0.25]],
      ['what FP32 rounds', { price: 0.1, ctr: 16_777_217 }, 'found', [Math.fround(0.1), 16_777_216]],
      ['whole numbers and truths', { price: -(2n ** 62n), ctr: true }, 'found', [-(2 ** 62), 1]],
      ['zeros', { price: 0, ctr: false }, 'found', [0, 0]],
      ['one feature alone', { price: 1.5 }, 'missing', [0, 0]],
      ['a null', { price: 1.5, ctr: null }, 'missing', [0, 0]],
      ['a text', { price: 1.5, ctr: 'cheap' }, 'invalid', [0, 0]],
      ['what FP32 does not hold', { price: 1.5, ctr: 1e39 }, 'invalid', [0, 0]],
      ['NaN', { price: 1.5, ctr: Number.NaN }, 'invalid', [0, 0]],
      ['a list too many', { price: 1.5, ctr: [1, 2] }, 'invalid', [0, 0]],
      ['an empty list', { price: 1.5, ctr: [] }, 'invalid', [0, 0]],
      ['features of nobody else', { price: 1.5, ctr: 2, other: 'x' }, 'found', [1.5, 2]],
    ])('of %s', async (_what, features, state, values) => {
      expect(await readOne([row(7n, features)], VIEW)).toEqual([state, values]);
    });

    it.each<[string, StoredRow['features'], number[]]>([
      ['floats', { price: [0.5, 1.5, -2], ctr: 4 }, [0.5, 1.5, -2, 4]],
      ['whole numbers', { price: [1n, 2n, -3n], ctr: 4n }, [1, 2, -3, 4]],
      ['truths', { price: [true, false, true], ctr: 4 }, [1, 0, 1, 4]],
    ])('has the values of a list of %s in their order', async (_what, features, values) => {
      expect(await readOne([row(7n, features)], { ...VIEW, width: 4 })).toEqual(['found', values]);
    });

    it.each<[string, number | undefined, number | undefined, RowState]>([
      ['young enough', NOW_MS - 1_000, 3_600_000, 'found'],
      ['too old', NOW_MS - 3_600_000, 60_000, 'stale'],
      ['of some time, where age matters', undefined, 60_000, 'stale'],
      ['of any age, where none matters', 1_000, undefined, 'found'],
      ['of the future', NOW_MS + 3_600_000, 60_000, 'found'],
    ])('that is %s', async (_what, eventMs, maxAgeMs, state) => {
      const [got] = await readOne([row(7n, { price: 1, ctr: 2 }, eventMs)], { ...VIEW, maxAgeMs });
      expect(got).toBe(state);
    });

    it.each<[string, Partial<FeatureView>, StoredRow['id']]>([
      ['another view', { view: 'users' }, 7n],
      ['another join key', { joinKey: 'user_id' }, 7n],
      ['the text of the number', {}, '7'],
      ['another number', {}, -7n],
      ['a text that is empty', {}, ''],
    ])('is missing by %s', async (_what, of, id) => {
      const stored = [row(7n, { price: 1, ctr: 2 })];
      expect(await readOne(stored, { ...VIEW, ...of }, id)).toEqual(['missing', [0, 0]]);
    });

    it.each<StoredRow['id']>([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 'item-1', 'ä🦆', 'x'.repeat(1_024)])(
      'is found by the id %s',
      async (id) => {
        expect(await readOne([row(id, { price: 1, ctr: 2 })], VIEW, id)).toEqual(['found', [1, 2]]);
      },
    );
  });

  it('reads several queries at once, each id in its place, however often it is there', async () => {
    const { source, put } = await open();
    await put([
      row(1n, { price: 1, ctr: 10 }),
      row(2n, { price: 2, ctr: 20 }),
      { view: 'users', joinKey: 'user_id', id: 'ann', features: { taste: [0.5, 0.25, 0.125] } },
    ]);
    const users: FeatureView = { view: 'users', joinKey: 'user_id', features: ['taste'], width: 3 };
    const answer = await source.read(
      [
        { of: VIEW, ids: [2n, 3n, 1n, 2n] },
        { of: users, ids: ['bob', 'ann'] },
        { of: VIEW, ids: [] },
        { of: VIEW, ids: [1n] },
      ],
      GENEROUS_MS,
    );
    expect(answer.map(({ states, values }) => [states, [...values]])).toEqual([
      [
        ['found', 'missing', 'found', 'found'],
        [2, 20, 0, 0, 1, 10, 2, 20],
      ],
      [
        ['missing', 'found'],
        [0, 0, 0, 0.5, 0.25, 0.125],
      ],
      [[], []],
      [['found'], [1, 10]],
    ]);
  });

  it('reads what was put last', async () => {
    const { source, put } = await open();
    const query = [{ of: VIEW, ids: [7n] }];
    await put([row(7n, { price: 1, ctr: 2 })]);
    await source.read(query, GENEROUS_MS);
    await put([row(7n, { ctr: 3 })]);
    expect([...((await source.read(query, GENEROUS_MS))[0]?.values ?? [])]).toEqual([1, 3]);
  });

  it('says STORE_UNAVAILABLE while it is away, within the limit, and works again afterwards', async () => {
    const { source, put, away, back } = await open();
    await put([row(7n, { price: 1, ctr: 2 })]);
    const query = [{ of: VIEW, ids: [7n] }];
    await away();
    await expect(source.read(query, 200)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    });
    await back();
    await eventually('it answers', () =>
      source.read(query, 500).then(
        ([rows]) => rows?.states[0] === 'found',
        () => false,
      ),
    );
  });

  it('refuses every read once it is closed', async () => {
    const { source } = await open();
    await source.close();
    await expect(source.read([{ of: VIEW, ids: [7n] }], 500)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
  });
}
