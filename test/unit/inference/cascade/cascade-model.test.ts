import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { CascadeModel, type LoadedStage } from '../../../../src/inference/cascade/cascade-model.ts';
import type { ItemResult, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { floatTensor, longTensor } from '../toy-model.ts';

const inputs = { request: new Set<string>(), candidate: new Set(['item']) };

/** Scores each candidate by `score` of its only feature, in a head of its own name and in `click`; keeps what it was given. */
function stageModel(name: string, score: (value: number) => number, fields: Partial<LoadedModel> = {}) {
  const batches: { items: readonly ScoreItem[]; kernel: string; deadlineMs: number | undefined }[] = [];
  let unloads = 0;
  const model: LoadedModel = {
    family: name,
    version: '1',
    variant: 'baseline',
    predictMs: (requests, candidates) => requests + candidates,
    async run(items, kernel, _memory, deadlineMs) {
      batches.push({ items, kernel, deadlineMs });
      return { items: items.map((item) => resultOf(name, item, score)), computeMs: 2, bytesMoved: 10 };
    },
    async unload() {
      unloads += 1;
    },
    ...fields,
  };
  return { model, batches, unloads: () => unloads };
}

function resultOf(name: string, item: ScoreItem, score: (value: number) => number): ItemResult {
  const [tensor] = item.candidateTensors;
  const bytes = Uint8Array.from(tensor?.contents ?? []);
  const values = new Float32Array(bytes.buffer).slice(0, item.scoreLimit);
  if (values.some(Number.isNaN))
    return { status: 'failed', error: new MillraceError('NON_FINITE', `${name} got a NaN`) };
  const scores = values.map(score);
  const heads = [name, 'click'].map((head) => ({ name: head, values: scores }));
  return { status: 'scored', scores: { heads, scores } };
}

function itemOf(...values: number[]): ScoreItem {
  const candidateTensors = [floatTensor('item', [values.length, 1], values)];
  const candidateIds = longTensor('ids', [values.length], [...values.keys()]);
  return { requestTensors: [], candidateTensors, candidateIds, hints: {}, scoreLimit: values.length };
}

const stage = (model: LoadedModel, keep = Number.POSITIVE_INFINITY): LoadedStage => ({ model, inputs, keep });
/** A cheap model that likes large values, one that likes small ones of what is left, and one that does so tenfold. */
function cascade() {
  const cheap = stageModel('cheap', (value) => value);
  const middle = stageModel('middle', (value) => -value);
  const strong = stageModel('strong', (value) => -10 * value, {
    variant: 'enhanced',
    kernels: ['attention'],
  });
  const model = new CascadeModel([stage(cheap.model, 3), stage(middle.model, 2), stage(strong.model)]);
  return { cheap, middle, strong, model };
}

function scoresOf(result: ItemResult | undefined) {
  if (result?.status !== 'scored') throw new Error('not scored');
  const { heads, scores, stages } = result.scores;
  const head = (name: string) => [...(heads.find((each) => each.name === name)?.values ?? [])];
  return { scores: [...scores], stages: [...(stages ?? [])], strong: head('strong'), click: head('click') };
}

describe('a cascade', () => {
  it('scores all with the first model, and what each kept with the next', async () => {
    const { model, middle, strong } = cascade();
    const { items, computeMs, bytesMoved } = await model.run(
      [itemOf(5, 1, 4, 2, 3)],
      'attention',
      'host',
      77,
    );
    expect(scoresOf(items[0])).toEqual({
      scores: [-5, 1, -40, 2, -30],
      stages: [1, 0, 2, 0, 2],
      strong: [Number.NaN, Number.NaN, -40, Number.NaN, -30],
      click: [-5, 1, -40, 2, -30],
    });
    expect(middle.batches[0]?.items[0]?.scoreLimit).toBe(3);
    expect(strong.batches[0]?.items[0]?.candidateIds?.contents).toEqual(longTensor('', [2], [2, 4]).contents);
    expect(strong.batches[0]?.deadlineMs).toBe(77);
    expect({ computeMs, bytesMoved }).toEqual({ computeMs: 6, bytesMoved: 30 });
  });

  it('takes the requests of a batch through each stage together', async () => {
    const { model, cheap, strong } = cascade();
    const { items } = await model.run([itemOf(1, 2, 3, 4), itemOf(9), itemOf()], 'attention');
    expect(items.map((item) => scoresOf(item).stages)).toEqual([[0, 2, 2, 1], [2], []]);
    expect([cheap.batches.length, strong.batches.length]).toEqual([1, 1]);
  });

  it('scores no candidate beyond the limit', async () => {
    const { model } = cascade();
    const { items } = await model.run([{ ...itemOf(1, 2, 3, 4, 5), scoreLimit: 2 }], 'attention');
    expect(scoresOf(items[0]).scores).toEqual([-10, -20]);
  });

  it('goes on without an item that failed, and gives its reason', async () => {
    const { model, middle } = cascade();
    const { items } = await model.run([itemOf(1, Number.NaN), itemOf(1)], 'attention');
    expect(items[0]).toMatchObject({ status: 'failed', error: { code: 'NON_FINITE' } });
    expect(scoresOf(items[1]).stages).toEqual([2]);
    expect(middle.batches[0]?.items.length).toBe(1);
  });

  it('asks no further model where every item failed', async () => {
    const { model, middle } = cascade();
    await model.run([itemOf(Number.NaN)], 'attention');
    expect(middle.batches).toEqual([]);
  });

  it('is its last model to whoever routes to it; a model before it without the kernel runs on its own', async () => {
    const { cheap, strong } = cascade();
    const first = stageModel('cheap', (value) => value, { kernels: ['dense', 'sparse'] });
    const model = new CascadeModel([stage(first.model, 3), stage(strong.model)]);
    expect(model).toMatchObject({ family: 'strong', variant: 'enhanced', kernels: ['attention'] });
    await model.run([itemOf(1)], 'attention');
    expect([first.batches[0]?.kernel, strong.batches[0]?.kernel]).toEqual(['dense', 'attention']);
    expect(cheap.batches).toEqual([]);
  });

  it('expects of each stage the time for what it gets', () => {
    const { model } = cascade();
    expect(model.predictMs(1, 10)).toBe(1 + 10 + (1 + 3) + (1 + 2));
    expect(model.predictMs(2, 4)).toBe(2 + 4 + (2 + 4) + (2 + 4));
  });

  it('rejects where a model fails on the whole batch', async () => {
    const { cheap } = cascade();
    const broken = stageModel('broken', (value) => value, {
      run: () => Promise.reject(new MillraceError('MODEL_FAILED', 'the device is gone')),
    });
    const model = new CascadeModel([stage(cheap.model, 3), stage(broken.model)]);
    await expect(model.run([itemOf(1)], 'dense')).rejects.toMatchObject({ code: 'MODEL_FAILED' });
  });

  it('unloads every model', async () => {
    const { model, cheap, middle, strong } = cascade();
    await model.unload();
    expect([cheap, middle, strong].map(({ unloads }) => unloads())).toEqual([1, 1, 1]);
  });
});
