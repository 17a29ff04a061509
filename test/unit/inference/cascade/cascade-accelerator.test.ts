import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { predictCostMs } from '../../../../src/core/signals/cost-model.ts';
import { withCascades } from '../../../../src/inference/cascade/cascade-accelerator.ts';
import { costOf } from '../../../../src/inference/cascade/cascade-cost.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { rankerItem } from '../../../conformance/accelerator.fixture.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';
import { cascadeFolder } from './cascade-folder.ts';

type Change = (folder: string) => void;

/** `text` of a file in the folder replaced. */
const withText =
  (file: string, from: string, to: string): Change =>
  (folder) => {
    const path = join(folder, file);
    const before = readFileSync(path, 'utf8');
    if (!before.includes(from)) throw new Error(`${file} has no ${from}`);
    writeFileSync(path, before.replace(from, to));
  };

async function open(cascade: string, change: Change = () => undefined) {
  const folder = cascadeFolder(temporaryFolder().path('models'), cascade);
  change(folder);
  const repository = await openRepository(folder);
  const bare = createOnnxCpuAccelerator({ repository, clock: systemClock() });
  return { repository, bare, accelerator: withCascades(bare, repository) };
}

async function scoresOn(accelerator: Awaited<ReturnType<typeof open>>['accelerator'], version: string) {
  const [family = '', number = ''] = version.split('@');
  const model = await accelerator.load(family, number);
  const { items } = await model.run([rankerItem(1, 24, 5)], 'dense');
  const [item] = items;
  if (item?.status !== 'scored') throw new Error(`not scored: ${JSON.stringify(item)}`);
  return item.scores;
}

describe('a version with a cascade, of the committed models', () => {
  it('scores what the stages before it keep, as each of them does alone', async () => {
    const { accelerator, bare } = await open(
      '[{ model: two-tower@1, keep: 12 }, { model: ranker@1, keep: 5 }]',
    );
    const got = await scoresOn(accelerator, 'dcn@3');
    const alone = await Promise.all(['two-tower@1', 'ranker@1', 'dcn@3'].map((name) => scoresOn(bare, name)));
    const best = (stage: number, of: readonly number[], keep: number): number[] =>
      of.toSorted((a, b) => (alone[stage]?.scores[b] ?? 0) - (alone[stage]?.scores[a] ?? 0)).slice(0, keep);
    const second = best(0, [...Array(24).keys()], 12);
    const third = best(1, second, 5);
    const stageOf = (place: number): number => (third.includes(place) ? 2 : second.includes(place) ? 1 : 0);
    expect([...(got.stages ?? [])]).toEqual([...Array(24).keys()].map(stageOf));
    got.scores.forEach((score, place) => {
      expect(score).toBeCloseTo(alone[stageOf(place)]?.scores[place] ?? Number.NaN, 5);
    });
    await bare.close();
  });

  it('costs what its stages do for what they get', async () => {
    const { repository, bare } = await open('[{ model: two-tower@1, keep: 12 }]');
    const [first, last] = [repository.version('two-tower', '1'), repository.version('dcn', '3')];
    const wanted = predictCostMs(first.cost, 500, 8) + predictCostMs(last.cost, 12, 8);
    expect(predictCostMs(costOf(repository, last), 500, 8)).toBeCloseTo(wanted, 12);
    expect(costOf(repository, first)).toBe(first.cost);
    await bare.close();
  });

  it('has its rows read from the source of its last version, for all stages', async () => {
    const { accelerator, bare } = await open(
      CASCADE,
      withText('dcn/3/config.yaml', ITEM, `${ITEM}, ${SOURCE}`),
    );
    const { sources } = await accelerator.load('dcn', '3');
    expect(sources?.map(({ input }) => input)).toEqual(['item']);
    await bare.close();
  });

  it('is scored by itself where it declares none', async () => {
    const { accelerator, bare } = await open('[]');
    expect((await scoresOn(accelerator, 'dcn@3')).stages).toBeUndefined();
    await bare.close();
  });
});

const CASCADE = '[{ model: two-tower@1, keep: 12 }]';
const TWO_TOWER = 'two-tower/1/config.yaml';
const ITEM = 'name: item, side: candidate, datatype: FP32, shape: [-1, 32], axes: [candidate, feature]';
const SOURCE = 'source: { view: v, entity: e, ids: INT64, features: [f], missing: default }';

describe('a cascade is not loaded', () => {
  it.each<{ name: string; cascade?: string; change?: Change; code: string; message: string }>([
    {
      name: 'a version before it is missing',
      cascade: '[{ model: two-tower@9, keep: 12 }]',
      code: 'MODEL_UNAVAILABLE',
      message: 'two-tower@9',
    },
    {
      name: 'one before it is a cascade, too',
      change: withText(TWO_TOWER, 'rankBy:', 'cascade: [{ model: ranker@1, keep: 3 }]\nrankBy:'),
      code: 'INVALID_MODEL',
      message: 'dcn@3 cannot have two-tower@1 before it: it is a cascade itself',
    },
    {
      name: 'the first takes fewer candidates than a request may have',
      change: withText(TWO_TOWER, 'candidatesMax: 2048', 'candidatesMax: 100'),
      code: 'INVALID_MODEL',
      message: 'it takes 100 candidates, and 2048 may come',
    },
    {
      name: 'one takes shorter sequences',
      change: withText(TWO_TOWER, 'sequenceLengthMax: 64', 'sequenceLengthMax: 8'),
      code: 'INVALID_MODEL',
      message: 'it takes sequences of 8 rows, and 64 may come',
    },
    {
      name: 'one takes fewer bytes',
      change: withText(TWO_TOWER, 'tensorBytesMax: 270592', 'tensorBytesMax: 1000'),
      code: 'INVALID_MODEL',
      message: 'it takes 1000 bytes of tensors, and 270592 may come',
    },
    {
      name: 'one has rows from a feature source where the last has a table',
      change: (folder) => {
        withText(TWO_TOWER, ITEM, `${ITEM}, ${SOURCE}`)(folder);
        withText('dcn/3/config.yaml', ITEM, `${ITEM}, table: { name: items, unknown: default }`)(folder);
      },
      code: 'INVALID_MODEL',
      message: 'its input item comes from a feature source',
    },
    {
      name: 'one needs what requests do not send',
      change: withText(TWO_TOWER, 'name: item,', 'name: vector,'),
      code: 'INVALID_MODEL',
      message: 'requests do not send its input vector (candidate FP32 [-1, 32])',
    },
    {
      name: 'one has an input of that name in another shape',
      change: withText(TWO_TOWER, 'shape: [-1, 64]', 'shape: [-1, 63]'),
      code: 'INVALID_MODEL',
      message: 'its input user is request FP32 [63], and requests send request FP32 [64]',
    },
    {
      name: 'one has rows from a feature source that the last has not',
      change: withText(TWO_TOWER, ITEM, `${ITEM.replace('item', 'vector')}, ${SOURCE}`),
      code: 'INVALID_MODEL',
      message: 'its input vector comes from a feature source',
    },
    {
      name: 'one needs what requests may leave out',
      change: withText(TWO_TOWER, ', optional: true', ''),
      code: 'INVALID_MODEL',
      message: 'its input history may not be left out',
    },
  ])('where $name', async ({ cascade = CASCADE, change, code, message }) => {
    const { accelerator, bare } = await open(cascade, change);
    const refusal = await accelerator.load('dcn', '3').catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(message) });
    await bare.close();
  });

  it.each([
    { name: 'no version', cascade: '[{ model: two-tower, keep: 12 }]', message: 'must name a version' },
    { name: 'keeps none', cascade: '[{ model: two-tower@1, keep: 0 }]', message: 'keep' },
    {
      name: 'keeps more than it gets',
      cascade: '[{ model: two-tower@1, keep: 5 }, { model: ranker@1, keep: 6 }]',
      message: 'no stage may keep more than the one before it',
    },
    {
      name: 'has more than eight stages',
      cascade: `[${Array(9).fill('{ model: two-tower@1, keep: 5 }')}]`,
      message: 'cascade',
    },
  ])('where a stage $name', async ({ cascade, message }) => {
    const { repository, bare } = await open(cascade);
    const [refused] = repository.refused;
    expect(refused).toMatchObject({ family: 'dcn', version: '3', error: { code: 'INVALID_MODEL' } });
    expect(refused?.error.message).toContain(message);
    await bare.close();
  });
});
