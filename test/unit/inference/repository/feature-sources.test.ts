import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../../../src/core/request/tensor.ts';
import { checkItem } from '../../../../src/inference/check-item.ts';
import { inputLayout } from '../../../../src/inference/input-layout.ts';
import { growingRepository } from '../../../../src/inference/repository/growing-repository.ts';
import {
  type ModelRepository,
  openRepository,
} from '../../../../src/inference/repository/open-repository.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';
import { toyFiles, toyItem, writeVersion } from '../toy-model.ts';

const ITEMS = {
  view: 'items',
  entity: 'item_id',
  ids: 'INT64',
  features: ['a', 'b', 'c'],
  missing: 'default',
};
const USERS = { ...ITEMS, view: 'users', entity: 'user_id', ids: 'STRING', idFrom: 'context.user' };

type Changes = Record<string, object>;

/** A repository of toy versions, each with other keys of its inputs. */
async function openToys(...versions: Changes[]): Promise<ModelRepository> {
  const root = temporaryFolder().path('models');
  for (const [i, changes] of versions.entries()) {
    const files = toyFiles(i + 1);
    const inputs = files.config.inputs.map((input) => ({ ...input, ...changes[String(input['name'])] }));
    await writeVersion(root, { ...files, config: { ...files.config, inputs } });
  }
  return openRepository(root);
}

const reasons = ({ refused }: ModelRepository): string[] => refused.map(({ error }) => error.message);

const table = { name: 'catalogue', unknown: 'default' };

describe('a version', () => {
  it('says what is read of which entity', async () => {
    const item = { ...ITEMS, maxAgeMs: 60_000, default: [1, 2, 3] };
    const repository = await openToys({
      item: { source: item },
      user: { source: { ...USERS, missing: 'reject' } },
    });
    expect(reasons(repository)).toEqual([]);
    expect(repository.version('toy', '1').sources).toEqual([
      {
        ...{
          input: 'user',
          side: 'request',
          rowShape: [3],
          ids: 'STRING',
          idFrom: 'context.user',
          missing: 'reject',
        },
        of: { view: 'users', joinKey: 'user_id', features: ['a', 'b', 'c'], width: 3, maxAgeMs: undefined },
        defaultRow: new Float32Array(3),
      },
      {
        ...{
          input: 'item',
          side: 'candidate',
          rowShape: [3],
          ids: 'INT64',
          idFrom: 'candidateIds',
          missing: 'default',
        },
        of: { view: 'items', joinKey: 'item_id', features: ['a', 'b', 'c'], width: 3, maxAgeMs: 60_000 },
        defaultRow: Float32Array.of(1, 2, 3),
      },
    ]);
  });

  it.each<[string, Changes, RegExp]>([
    ['rows of whole numbers', { segment: { source: USERS } }, /segment: only an FP32 input of one row/],
    ['a sequence', { history: { source: USERS } }, /history: only an FP32 input of one row/],
    ['a table too', { item: { table, source: ITEMS } }, /from a table or from a source/],
    ['no id of the request', { user: { source: { ...USERS, idFrom: undefined } } }, /user: .*needs idFrom/],
    [
      'an id that no request has',
      { user: { source: { ...USERS, idFrom: 'requestId' } } },
      /bucketKey or context/,
    ],
    [
      'an id of the request for candidates',
      { item: { source: USERS } },
      /item: candidates have their ids from/,
    ],
    [
      'more features than values',
      { item: { source: { ...ITEMS, features: ['a', 'b', 'c', 'd'] } } },
      /4 features do not fit into a row of 3/,
    ],
    [
      'a default row of another width',
      { item: { source: { ...ITEMS, default: [1] } } },
      /has 1 values, and a row has 3/,
    ],
    [
      'a default row that is no FP32',
      { item: { source: { ...ITEMS, default: [1, 2, 1e39] } } },
      /default\[2\]/,
    ],
    [
      'a default row that never stands in',
      { item: { source: { ...ITEMS, missing: 'reject', default: [1, 2, 3] } } },
      /no meaning/,
    ],
    ['ids of another kind', { item: { source: { ...ITEMS, ids: 'INT32' } } }, /source\.ids/],
    ['an unknown key', { item: { source: { ...ITEMS, ttl: 5 } } }, /ttl/],
  ])('with %s is refused', async (_what, changes, message) => {
    expect(reasons(await openToys(changes))).toEqual([expect.stringMatching(message)]);
  });
});

it.each([['user'], ['item']])(
  'whoever runs it without rows for %s is refused: they are not zeros',
  async (input) => {
    const repository = await openToys({ item: { source: ITEMS }, user: { source: USERS } });
    const item = toyItem({ user: [1, 2, 3], segment: 1, history: [], items: [[1, 2, 3]] });
    const others = (tensors: readonly Tensor[]): Tensor[] => tensors.filter(({ name }) => name !== input);
    const left = {
      ...item,
      requestTensors: others(item.requestTensors),
      candidateTensors: others(item.candidateTensors),
    };
    const layout = inputLayout(repository.version('toy', '1'));
    expect(() => checkItem(layout, item)).not.toThrow();
    expect(() => checkItem(layout, left)).toThrow(new RegExp(`an input is missing .*${input}`));
  },
);

describe('a family', () => {
  const inputs = ({ families }: ModelRepository) =>
    Object.fromEntries(
      families[0]?.contract.inputs.map(({ name, required, byIds, idFrom }) => [
        name,
        { required, byIds, idFrom },
      ]) ?? [],
    );

  it.each<[string, Changes[], object]>([
    [
      'ids alone are enough where every version has a source',
      [
        { item: { source: ITEMS }, user: { source: USERS } },
        { item: { source: ITEMS }, user: { source: USERS } },
      ],
      { item: { required: false, byIds: true }, user: { required: false, idFrom: 'context.user' } },
    ],
    [
      'or a table',
      [{ item: { source: ITEMS } }, { item: { table } }],
      { item: { required: false, byIds: true } },
    ],
    [
      'rows are needed while one has neither',
      [{ item: { source: ITEMS }, user: { source: USERS } }, {}],
      { item: { required: true }, user: { required: true } },
    ],
    [
      'in whichever order they are',
      [{}, { item: { source: ITEMS }, user: { source: USERS } }],
      { item: { required: true }, user: { required: true } },
    ],
  ])('%s', async (_what, versions, expected) => {
    const repository = await openToys(...versions);
    expect(reasons(repository)).toEqual([]);
    expect(inputs(repository)).toMatchObject(expected);
  });

  it('has one id for an input, whichever version reads it', async () => {
    const [one, other] = [USERS, { ...USERS, idFrom: 'bucketKey' }];
    const repository = await openToys({ user: { source: one } }, { user: { source: other } });
    expect(reasons(repository)).toEqual([
      expect.stringMatching(/user: by (context\.user, not bucketKey|bucketKey, not context\.user)/),
    ]);
  });

  it.each(['item', 'user'])(
    'that takes an id for %s refuses a published version that has no rows for it',
    async (input) => {
      const folder = growingRepository(
        await openToys({ [input]: { source: input === 'item' ? ITEMS : USERS } }),
      );
      const other = await openToys({}, {});
      expect(() => folder.add(other, 'toy', '2')).toThrow(
        new RegExp(`no item table for ${input}, nor a feature source`),
      );
    },
  );
});
