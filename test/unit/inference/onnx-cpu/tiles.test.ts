import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { compileGraph } from '../../../../src/inference/rocs/compile.ts';
import type { TrialBatch, TrialFeeds } from '../../../../src/inference/rocs/trial-batch.ts';
import type { Accelerator, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { batchOf, openForms } from '../rocs/compare.ts';
import { deepCrossAttention } from '../rocs/models.ts';
import { floatTensor, toyConfig, toyCost, writeVersion } from '../toy-model.ts';

const [LENGTH, WIDTH] = [8, 16];
const MODEL = deepCrossAttention(LENGTH, WIDTH, 2, 4, true);
const HEAD = MODEL.graph.outputs[0]?.name ?? '';

/** A version of the compiled model, its golden case computed by the model as it was given. */
async function files(golden: TrialBatch) {
  const compiled = compileGraph(MODEL.graph, MODEL.groups, { strict: true, attention: 'tiles' });
  const graph = writeGraph(compiled.graph);
  const want = await given(golden);
  const tensor = (shape: readonly number[], contents: ArrayBufferView, datatype = 'FP32') => ({
    datatype,
    shape: [...shape],
    base64: Buffer.from(contents.buffer, contents.byteOffset, contents.byteLength).toString('base64'),
  });
  const inputs = Object.entries(golden.feeds).map(([name, { dims, data }]) => [name, tensor(dims, data)]);
  const index = BigInt64Array.from(golden.requestOf, BigInt);
  return {
    graph,
    config: {
      ...toyConfig(graph),
      inputs: [
        {
          name: 'history',
          side: 'request',
          datatype: 'FP32',
          shape: [-1, LENGTH, WIDTH],
          axes: ['request', 'feature', 'feature'],
        },
        { name: 'user', side: 'request', datatype: 'FP32', shape: [-1, WIDTH], axes: ['request', 'feature'] },
        {
          name: 'item',
          side: 'candidate',
          datatype: 'FP32',
          shape: [-1, WIDTH],
          axes: ['candidate', 'feature'],
        },
        { name: 'request_index', side: 'index', datatype: 'INT64', shape: [-1], axes: ['candidate'] },
      ],
      tiles: { candidates: 'tile_candidates', requests: 'tile_request', slots: 'candidate_slot' },
      heads: [
        {
          name: HEAD,
          datatype: 'FP32',
          axes: ['candidate'],
          shape: [-1],
          probability: false,
          meaning: 'of a test',
        },
      ],
      hints: [],
      rankBy: HEAD,
      limits: { candidatesMax: 2_048, sequenceLengthMax: 8, tensorBytesMax: 1e6 },
    },
    cost: { ...toyCost(), features: ['1', 'N'], coefficients: [0.1, 0.01] },
    golden: {
      format: 1,
      family: 'toy',
      version: 1,
      synthetic: true,
      tolerance: { relative: 1e-4, absolute: 1e-5 },
      cases: [
        {
          name: 'mixed',
          inputs: { ...Object.fromEntries(inputs), request_index: tensor([index.length], index, 'INT64') },
          outputs: { [HEAD]: tensor([want.length], want) },
          scores: tensor([want.length], want),
        },
      ],
    },
  };
}

async function given(batch: TrialBatch): Promise<Float32Array> {
  const { run, prepare, close } = await openForms(MODEL);
  const answers = await run.naive(prepare(batch));
  await close();
  return answers.get(HEAD) ?? new Float32Array();
}

/** The requests of a batch, one by one, as a worker has them. */
function itemsOf({ feeds, requestOf, requests }: TrialBatch): ScoreItem[] {
  const rows = (tensors: TrialFeeds, name: string, at: number, size: number): number[] =>
    Array.from({ length: size }, (_, n) => Number(tensors[name]?.data[at * size + n]));
  return Array.from({ length: requests }, (_, request) => {
    const own = requestOf.flatMap((each, n) => (each === request ? [n] : []));
    return {
      requestTensors: [
        floatTensor('history', [LENGTH, WIDTH], rows(feeds, 'history', request, LENGTH * WIDTH)),
        floatTensor('user', [WIDTH], rows(feeds, 'user', request, WIDTH)),
      ],
      candidateTensors: [
        floatTensor(
          'item',
          [own.length, WIDTH],
          own.flatMap((n) => rows(feeds, 'item', n, WIDTH)),
        ),
      ],
      hints: {},
      scoreLimit: own.length,
    };
  });
}

describe('a compiled model whose candidates lie in tiles', () => {
  let root: string;
  let accelerator: Accelerator;
  let model: LoadedModel;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'millrace-tiles-'));
    const golden = batchOf(MODEL, [0, 1, 1, 0, 2, 1], 3, seededRandom(1).stream('golden'));
    await writeVersion(root, (await files(golden)) as never);
    const repository = await openRepository(root);
    accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock() });
    expect(repository.version('toy', '1').tiles).toBeDefined();
    model = await accelerator.load('toy', '1');
  });
  afterAll(async () => {
    await accelerator.close();
    await rm(root, { recursive: true, force: true });
  });

  test.each([[[1]], [[7]], [[40, 3, 200, 1]], [[33, 32, 31]]])(
    'scores requests of %j candidates as the given model',
    async (counts) => {
      const requestOf = counts.flatMap((count, request) => new Array<number>(count).fill(request));
      const batch = batchOf(MODEL, requestOf, counts.length, seededRandom(2).stream('batch'));
      const want = await given(batch);
      const { items } = await model.run(itemsOf(batch), 'dense');
      const got = items.flatMap((item) => (item.status === 'scored' ? [...item.scores.scores] : []));
      expect(got).toHaveLength(want.length);
      for (const [n, score] of got.entries()) expect(score).toBeCloseTo(want[n] ?? Number.NaN, 5);
      expect(new Set(got).size).toBeGreaterThan(got.length / 2);
    },
  );
});
