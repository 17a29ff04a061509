import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ModelRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator, ItemScores, LoadedModel, ScoreItem } from '../../src/ports/accelerator.ts';
import {
  type ModelFixture,
  rankerFixture,
  scoresOf,
  toyFixture,
  withCutTensor,
  withNaN,
} from './accelerator.fixture.ts';

export interface AcceleratorUnderTest {
  backend: string;
  simulated: boolean;
  create(repository: ModelRepository): Accelerator | Promise<Accelerator>;
  /** Its batches tell what was computed in their time, so that cost models can be fitted to it. */
  tellsShapes: boolean;
  /** It reads the tensors, so it must refuse bad ones. */
  readsTensors: boolean;
  /** Its first one where left out. */
  kernel?: string;
  /** Models that the kernel can run; a toy and the committed one where left out. */
  fixtures?: readonly ModelFixture[];
}

/** Of scores of the same candidates in batches of other shapes: the order of additions may differ. */
const TOLERANCE = 1e-5;

/** What every accelerator owes to its callers, on a toy model and on the committed one. */
export function describeAccelerator(subject: AcceleratorUnderTest): void {
  const { backend, kernel = 'its first kernel', fixtures = [toyFixture(), rankerFixture()] } = subject;
  describe.each(fixtures)(`${backend}, ${kernel}, with $name`, (fixture) => {
    describeModel(subject, fixture);
  });
}

function describeModel(subject: AcceleratorUnderTest, fixture: ModelFixture): void {
  let accelerator: Accelerator;
  let model: LoadedModel;
  let kernel: string;

  beforeAll(async () => {
    accelerator = await subject.create(await fixture.open());
    model = await accelerator.load(fixture.family, fixture.version);
    kernel = subject.kernel ?? accelerator.capabilities.kernels[0] ?? '';
  });
  afterAll(async () => {
    await accelerator.close();
    await fixture.close();
  });

  const scoreAll = async (items: readonly ScoreItem[]): Promise<ItemScores[]> => {
    const batch = await model.run(items, kernel);
    expect(batch.items).toHaveLength(items.length);
    return batch.items.map(scoresOf);
  };
  const scoreOne = async (item: ScoreItem): Promise<ItemScores> => {
    const [scores] = await scoreAll([item]);
    if (scores === undefined) throw new Error('there is no result');
    return scores;
  };

  test('says what it is', () => {
    const { capabilities } = accelerator;
    expect(capabilities).toMatchObject({ backend: subject.backend, simulated: subject.simulated });
    expect(capabilities.kernels).toContain('dense');
    expect(model.kernels ?? capabilities.kernels).toContain(kernel);
    expect(capabilities.memories.length).toBeGreaterThan(0);
    expect(capabilities.datatypes).toEqual(expect.arrayContaining(['FP32', 'INT64']));
    expect(model).toMatchObject({ family: fixture.family, version: fixture.version, variant: 'baseline' });
  });

  test('gives each item one value per head and candidate, and a score', async () => {
    const results = await scoreAll([fixture.item(1, 3, 2), fixture.item(2, 1, 0), fixture.item(3, 7, 5)]);
    expect(results.map(({ scores }) => scores.length)).toEqual([3, 1, 7]);
    for (const { heads, scores } of results) {
      expect(heads.length).toBeGreaterThan(0);
      for (const head of heads) expect(head.values).toHaveLength(scores.length);
      expect(scores.every(Number.isFinite)).toBe(true);
    }
  });

  test('scores a batch as it scores each item alone, in order', async () => {
    const shape = fc.record({
      seed: fc.nat({ max: 50 }),
      candidates: fc.integer({ min: 0, max: 20 }),
      rows: fc.nat({ max: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(shape, { minLength: 1, maxLength: 8 }), async (shapes) => {
        const items = shapes.map(({ seed, candidates, rows }) => fixture.item(seed, candidates, rows));
        const together = await scoreAll(items);
        for (const [i, item] of items.entries()) expectClose(together[i], await scoreOne(item));
      }),
      { numRuns: 15 },
    );
  });

  test('scores the first n candidates as it scores them among all', async () => {
    const item = fixture.item(4, 12, 3);
    const whole = await scoreOne(item);
    for (const scoreLimit of [0, 1, 5, 12]) {
      const prefix = await scoreOne({ ...item, scoreLimit });
      expectClose(prefix, {
        heads: whole.heads.map(({ name, values }) => ({ name, values: values.subarray(0, scoreLimit) })),
        scores: whole.scores.subarray(0, scoreLimit),
      });
    }
  });

  test('gives a request without candidates no scores', async () => {
    const batch = await model.run([{ ...fixture.item(5, 4, 1), scoreLimit: 0 }], kernel);
    expect(batch.items.map((item) => scoresOf(item).scores.length)).toEqual([0]);
    expect(batch.computeMs).toBe(0);
  });

  test('tells the shape of what it computed, where it tells one', async () => {
    const items = [fixture.item(1, 3, 2), fixture.item(2, 1, 0), { ...fixture.item(3, 7, 5), scoreLimit: 4 }];
    const rows = items.map(longestSequence);
    const { shape } = await model.run([...items, { ...fixture.item(4, 9, 8), scoreLimit: 0 }], kernel);
    expect(shape !== undefined).toBe(subject.tellsShapes);
    if (shape === undefined) return;
    const [a = 0, b = 0, c = 0] = rows;
    const candidateRows = 3 * a + b + 4 * c;
    expect(shape).toEqual({ requests: 3, candidates: 8, rows: a + b + c, candidateRows });
  });

  test('gives an empty batch an empty answer', async () => {
    expect(await model.run([], kernel)).toMatchObject({ items: [] });
  });

  test('keeps batches that run at the same time apart', async () => {
    const items = Array.from({ length: 6 }, (_, i) => fixture.item(i, 2 + i, i));
    const alone: ItemScores[] = [];
    for (const item of items) alone.push(await scoreOne(item));
    const together = await Promise.all(items.map((item) => scoreOne(item)));
    for (const [i, scores] of together.entries()) expectClose(scores, alone[i]);
  });

  test('takes tensors at any byte of a record', async () => {
    const item = fixture.item(6, 3, 2);
    const shift = (tensor: ScoreItem['requestTensors'][number]) => ({
      ...tensor,
      contents: Buffer.concat([Buffer.from([1]), tensor.contents]).subarray(1),
    });
    const shifted = {
      ...item,
      requestTensors: item.requestTensors.map(shift),
      candidateTensors: item.candidateTensors.map(shift),
    };
    expectClose(await scoreOne(shifted), await scoreOne(item));
  });

  test('predicts more time for more work', () => {
    expect(model.predictMs(1, 64)).toBeGreaterThanOrEqual(0);
    expect(model.predictMs(2, 64)).toBeGreaterThanOrEqual(model.predictMs(1, 64));
    expect(model.predictMs(2, 128)).toBeGreaterThanOrEqual(model.predictMs(2, 64));
  });

  test.each([
    ['family', (): [string, string] => ['nobody', fixture.version]],
    ['version', (): [string, string] => [fixture.family, '999999']],
    ['path', (): [string, string] => ['..', fixture.version]],
  ])('refuses an unknown %s and keeps what is loaded', async (_, name) => {
    await expect(accelerator.load(...name())).rejects.toMatchObject({ code: 'INVALID_MODEL' });
    expect((await scoreOne(fixture.item(1, 2, 1))).scores).toHaveLength(2);
  });

  test('unloads one loading of a model and keeps the other', async () => {
    const second = await accelerator.load(fixture.family, fixture.version);
    const item = fixture.item(1, 2, 1);
    const last = second.run([item], kernel);
    await second.unload();
    await second.unload();
    expect(scoresOf((await last).items[0]).scores).toHaveLength(2);
    await expect(second.run([item], kernel)).rejects.toMatchObject({ code: 'CLOSED' });
    expect((await scoreOne(item)).scores).toHaveLength(2);
  });

  if (!subject.readsTensors) return;

  test.each([
    ['a value that is not finite', withNaN, 'NON_FINITE'],
    ['a tensor of the wrong size', withCutTensor, 'INVALID_TENSOR'],
    ['a missing tensor', (item: ScoreItem) => ({ ...item, candidateTensors: [] }), 'INVALID_TENSOR'],
    [
      'more to score than there is',
      (item: ScoreItem) => ({ ...item, scoreLimit: item.scoreLimit + 1 }),
      'INVALID_TENSOR',
    ],
  ])('fails an item with %s alone', async (_, spoil, code) => {
    const good = [fixture.item(1, 3, 1), fixture.item(3, 5, 4)];
    const batch = await model.run(
      [fixture.item(1, 3, 1), spoil(fixture.item(2, 4, 8)), fixture.item(3, 5, 4)],
      kernel,
    );
    expect(batch.items[1]).toMatchObject({ status: 'failed', error: { code } });
    const [first, second] = await scoreAll(good);
    expectClose(scoresOf(batch.items[0]), first);
    expectClose(scoresOf(batch.items[2]), second);
    // What failed was not computed.
    if (batch.shape !== undefined) expect(batch.shape).toMatchObject({ requests: 2, candidates: 8 });
  });

  test('answers a batch of bad items alone', async () => {
    const batch = await model.run([withNaN(fixture.item(1, 2, 1))], kernel);
    expect(batch.items).toMatchObject([{ status: 'failed', error: { code: 'NON_FINITE' } }]);
  });

  test('refuses a kernel that it does not have', async () => {
    await expect(model.run([fixture.item(1, 2, 1)], 'quantum')).rejects.toMatchObject({
      code: 'MODEL_FAILED',
    });
  });
}

/** Rows of an item's longest sequence; what is of fixed size has more axes, or fewer. */
function longestSequence({ requestTensors }: ScoreItem): number {
  return requestTensors.find(({ name }) => name === 'history')?.shape[0] ?? 0;
}

function expectClose(got: ItemScores | undefined, want: ItemScores | undefined): void {
  expect(got?.heads.map(({ name }) => name)).toEqual(want?.heads.map(({ name }) => name));
  expectValues(got?.scores, want?.scores);
  want?.heads.forEach(({ values }, position) => {
    expectValues(got?.heads[position]?.values, values);
  });
}

function expectValues(got: Float32Array | undefined, want: Float32Array | undefined): void {
  expect(got).toHaveLength(want?.length ?? 0);
  want?.forEach((value, i) => {
    expect(Math.abs((got?.[i] ?? Number.NaN) - value)).toBeLessThanOrEqual(
      TOLERANCE * Math.max(Math.abs(value), 1e-2),
    );
  });
}
