import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { createSparseCpuAccelerator } from '../../../../src/inference/sparse-cpu/accelerator.ts';
import type { Accelerator, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { rankerItem, scoresOf } from '../../../conformance/accelerator.fixture.ts';
import { toyFiles, toyItem, toyRequest, toyScores, writeVersion } from '../toy-model.ts';
import { wideItem, writeWideVersion } from './wide-version.ts';

const SIZES = { inner: 203, columns: 37 };
const TOLERANCE = 1e-5;

async function expectSame(model: LoadedModel, items: readonly ScoreItem[]): Promise<void> {
  const [dense, sparse] = [await model.run(items, 'dense'), await model.run(items, 'sparse')];
  items.forEach((_, n) => {
    const [want, got] = [scoresOf(dense.items[n]), scoresOf(sparse.items[n])];
    want.heads.forEach(({ values }, head) => {
      values.forEach((value, i) => {
        const found = got.heads[head]?.values[i] ?? Number.NaN;
        expect(Math.abs(found - value)).toBeLessThanOrEqual(TOLERANCE * Math.abs(value));
      });
    });
  });
}

/** Candidates whose values below the limit are zeros. */
function thinned(item: ScoreItem, limit: number): ScoreItem {
  const candidateTensors = item.candidateTensors.map((tensor) => {
    const values = new Float32Array(new Uint8Array(tensor.contents).buffer);
    return { ...tensor, contents: Buffer.from(values.map((value) => (value < limit ? 0 : value)).buffer) };
  });
  return { ...item, candidateTensors };
}

describe('a version whose candidates go into a product', () => {
  let root: string;
  let accelerator: Accelerator;
  let model: LoadedModel;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'millrace-wide-'));
    await writeWideVersion(root, SIZES);
    await writeVersion(root, toyFiles());
    accelerator = createSparseCpuAccelerator({
      repository: await openRepository(root),
      clock: systemClock(),
    });
    model = await accelerator.load('wide', '1');
  });
  afterAll(async () => {
    await accelerator.close();
    await rm(root, { recursive: true, force: true });
  });

  test('has both kernels', () => {
    expect(model.kernels).toEqual(['dense', 'sparse']);
  });

  test.each([0, 0.5, 0.95, 1])('scores batches of several requests alike, at %d zeros', async (zeroShare) => {
    for (const counts of [[1], [7, 1, 300], [64, 2, 2, 1]]) {
      const items = counts.map((candidates, seed) => wideItem(SIZES, { seed, candidates, zeroShare }));
      await expectSame(model, items);
    }
  });

  test('says what the sparse kernel found, and of the dense one nothing', async () => {
    const items = [wideItem(SIZES, { seed: 1, candidates: 50, zeroShare: 0.9 })];
    const values = new Float32Array(new Uint8Array(items[0]?.candidateTensors[0]?.contents ?? []).buffer);
    expect((await model.run(items, 'sparse')).density).toEqual({
      values: 50 * SIZES.inner,
      nonZeros: values.filter((value) => value !== 0).length,
    });
    expect((await model.run(items, 'dense')).density).toBeUndefined();
  });

  test('runs both kernels side by side', async () => {
    const items = [wideItem(SIZES, { seed: 1, candidates: 40, zeroShare: 0.9 })];
    const batches = await Promise.all(
      ['sparse', 'dense', 'sparse', 'dense'].map((kernel) => model.run(items, kernel)),
    );
    const scores = batches.map((batch) => scoresOf(batch.items[0]).scores);
    expect(scores[2]).toEqual(scores[0]);
    expect(scores[3]).toEqual(scores[1]);
  });

  test('keeps both kernels where it is loaded beside others, and lets both go', async () => {
    const beside = await accelerator.load('wide', '1', { besideOthers: true });
    await expectSame(beside, [wideItem(SIZES, { seed: 4, candidates: 9, zeroShare: 0.9 })]);
    await beside.unload();
    await expectSame(model, [wideItem(SIZES, { seed: 4, candidates: 9, zeroShare: 0.9 })]);
  });

  test('another whose candidates do not is refused for the sparse kernel, with the node, and runs on the dense one', async () => {
    const toy = await accelerator.load('toy', '1');
    const request = toyRequest(1, 3, 1);
    expect(toy.kernels).toEqual(['dense']);
    expect([...(toy.refusedKernels?.keys() ?? [])]).toEqual(['sparse']);
    await expect(toy.run([toyItem(request)], 'sparse')).rejects.toMatchObject({
      code: 'MODEL_FAILED',
      message: expect.stringMatching(/toy@1 cannot be run by that kernel: .*Mul → products.*no product/),
    });
    expect([...scoresOf((await toy.run([toyItem(request)], 'dense')).items[0]).scores]).toEqual(
      toyScores(request).scores,
    );
    await toy.unload();
  });
});

describe('the committed models', () => {
  let accelerator: Accelerator;
  beforeAll(async () => {
    const repository = await openRepository(join(import.meta.dirname, '../../../../models/repository'));
    accelerator = createSparseCpuAccelerator({ repository, clock: systemClock() });
  });
  afterAll(() => accelerator.close());

  test.each([
    ['ranker', '1'],
    ['ranker', '2'],
    ['dcn', '1'],
    ['dcn', '2'],
    ['dcn', '3'],
    ['two-tower', '1'],
  ])('%s@%s scores the same by either kernel', async (family, version) => {
    const model = await accelerator.load(family, version);
    expect(model.kernels).toEqual(['dense', 'sparse']);
    const items = [rankerItem(1, 40, 3), rankerItem(2, 1, 0), rankerItem(3, 129, 12)];
    await expectSame(model, items);
    await expectSame(
      model,
      items.map((item) => thinned(item, 0.95)),
    );
    await model.unload();
  });
});
