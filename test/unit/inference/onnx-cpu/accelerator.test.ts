import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import type { Tensor } from '../../../../src/core/request/tensor.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { Accelerator, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { rankerItem, scoresOf } from '../../../conformance/accelerator.fixture.ts';
import {
  bytesField,
  FLOAT,
  initializer,
  message,
  node,
  numberField,
  model as onnxModel,
  valueInfo,
} from '../onnx-bytes.ts';
import {
  floatTensor,
  longTensor,
  SEGMENT_WEIGHT_BYTES,
  SEGMENT_WEIGHTS,
  type ToyFiles,
  toyConfig,
  toyFiles,
  toyGraph,
  toyItem,
  toyRequest,
  toyScores,
  writeVersion,
} from '../toy-model.ts';

type Change = (files: ToyFiles) => void;
type ConfigInput = ToyFiles['config']['inputs'][number];

const withGraph =
  (graph: (files: ToyFiles) => Uint8Array): Change =>
  (files) => {
    files.graph = graph(files);
    files.config.model.digest = toyConfig(files.graph).model.digest;
  };
const withInput =
  (name: string, change: Partial<ConfigInput>): Change =>
  (files) => {
    files.config.inputs = files.config.inputs.map((input) =>
      input.name === name ? { ...input, ...change } : input,
    );
  };
const withGolden =
  (side: 'inputs' | 'outputs', name: 'segment' | 'click', tensor: Tensor): Change =>
  (files) => {
    const golden = files.golden.cases[0]?.[side];
    Object.assign(golden ?? {}, {
      [name]: { ...tensor, name: undefined, contents: undefined, base64: tensor.contents.toString('base64') },
    });
  };

const unknown = (operator: string): Uint8Array =>
  onnxModel(node(operator, ['a'], 'b'), valueInfo(11, 'a', FLOAT, ['N']), valueInfo(12, 'b', FLOAT, ['N']));

/** An ONNX file ends with its opset. */
function withOpset(graph: Uint8Array, opset: number): Uint8Array {
  return Buffer.concat([graph.subarray(0, -1), Buffer.of(opset)]);
}

const inAnotherFile = initializer(
  'weights',
  FLOAT,
  [SEGMENT_WEIGHTS.length],
  Buffer.alloc(0),
  message(13, bytesField(1, 'location'), bytesField(2, '../../../../etc/passwd')),
  numberField(14, 1),
);
const nanWeights = Buffer.from(new Float32Array(SEGMENT_WEIGHTS.length).fill(Number.NaN).buffer);
const GIB_OF_FLOATS = 2 ** 28;

const BAD_MODELS: readonly [what: string, change: Change, reason: RegExp][] = [
  ['a cut graph', withGraph(({ graph }) => graph.subarray(0, graph.length >> 1)), /not a whole ONNX file/],
  ['an empty graph', withGraph(() => new Uint8Array(0)), /ONNX Runtime refuses it/],
  [
    'an operator that nobody knows',
    withGraph(() => unknown('Frobnicate')),
    /ONNX Runtime refuses it: .*Frobnicate/,
  ],
  [
    'an operator whose name has no end, which is quoted in part',
    withGraph(() => unknown('z'.repeat(120_000))),
    /ONNX Runtime refuses it: /,
  ],
  [
    'an opset of the future',
    withGraph(({ graph }) => withOpset(graph, 99)),
    /ONNX Runtime refuses it: .*opset/i,
  ],
  [
    'weights that are no numbers',
    withGraph(() => toyGraph(initializer('weights', FLOAT, [SEGMENT_WEIGHTS.length], nanWeights))),
    /golden case interleaved gives NaN for click\[0\]/,
  ],
  [
    'weights that claim a gibibyte and are 16 bytes',
    withGraph(() => toyGraph(initializer('weights', FLOAT, [GIB_OF_FLOATS], SEGMENT_WEIGHT_BYTES))),
    /ONNX Runtime refuses it/,
  ],
  [
    'a tensor that claims a gibibyte of a small file',
    withGraph(() => Buffer.concat([toyGraph(), Buffer.of(0x3a, 0x80, 0x80, 0x80, 0x80, 0x04)])),
    /not a whole ONNX file/,
  ],
  [
    'weights in a file outside of its folder',
    withGraph(() => toyGraph(inAnotherFile)),
    /keeps a tensor in another file .*weights/,
  ],
  [
    'other bytes than the config means',
    ({ config }) => Object.assign(config.model, { digest: `sha256:${'0'.repeat(64)}` }),
    /not the file that the config means/,
  ],
  [
    'a head that the graph lacks',
    ({ config }) => {
      config.heads = config.heads.map((head) => (head.name === 'match' ? { ...head, name: 'fit' } : head));
      config.rankBy = 'click';
    },
    /output match that the config does not name; the graph has no output fit/,
  ],
  [
    'an input that the graph lacks',
    ({ config }) => {
      const age = {
        name: 'age',
        side: 'request',
        datatype: 'FP32',
        shape: [-1, 1],
        axes: ['request', 'feature'],
      };
      config.inputs = [...config.inputs, age];
    },
    /the graph has no input age/,
  ],
  [
    'an input of the graph that the config lacks',
    ({ config }) => {
      config.inputs = config.inputs.filter(({ name }) => name !== 'segment');
    },
    /has an input segment that the config does not name/,
  ],
  [
    'an input of another type',
    withInput('segment', { datatype: 'FP32' }),
    /input segment is int64 \[B\] in the graph, float32 \[-1\] in the config/,
  ],
  [
    'an input of another width',
    withInput('item', { shape: [-1, 4] }),
    /input item is float32 \[N, 3\] in the graph, float32 \[-1, 4\]/,
  ],
  [
    'golden cases of other outputs',
    withGolden('outputs', 'click', floatTensor('', [3], [1, 2, 3])),
    /golden case interleaved gives .* for click\[0\], not 1/,
  ],
  [
    'golden cases of fewer outputs',
    withGolden('outputs', 'click', floatTensor('', [2], [1, 2])),
    /output click/,
  ],
  [
    'golden cases of other scores',
    ({ config }) => Object.assign(config, { rankBy: 'click' }),
    /golden case interleaved gives .* for scores\[\d\]/,
  ],
  [
    'golden cases without an input',
    ({ golden }) => Reflect.deleteProperty(golden.cases[0]?.inputs ?? {}, 'item'),
    /golden case interleaved lacks item/,
  ],
  [
    'golden cases that the graph cannot run',
    withGolden('inputs', 'segment', longTensor('', [2], [99, 0])),
    /ONNX Runtime refuses it/,
  ],
];

function badFiles(index: number, change: Change): ToyFiles {
  const files = toyFiles();
  for (const named of [files.config, files.golden, files.cost]) named.family = `bad${index}`;
  change(files);
  return files;
}

let root: string;
let accelerator: Accelerator;
let model: LoadedModel;

/** One model per bad case, each a family of its own, beside a good one. */
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-onnx-'));
  await writeVersion(root, toyFiles(1));
  await writeVersion(root, toyFiles(2, 'enhanced'));
  for (const [i, [, change]] of BAD_MODELS.entries())
    await writeVersion(root, badFiles(i, change), `bad${i}/1`);
  accelerator = createOnnxCpuAccelerator({ repository: await openRepository(root), clock: systemClock() });
  model = await accelerator.load('toy', '1');
});
afterAll(async () => {
  await accelerator.close();
  await rm(root, { recursive: true, force: true });
});

/** An item whose segment is outside of the graph's table: only the graph notices. */
function poison(item: ScoreItem): ScoreItem {
  const requestTensors = item.requestTensors.map((tensor) =>
    tensor.name === 'segment' ? longTensor('segment', [], [99]) : tensor,
  );
  return { ...item, requestTensors };
}

describe('scores', () => {
  test('are what the graph means, through padding, shared calls and reused memory', async () => {
    for (let round = 0; round < 3; round++) {
      const requests = Array.from({ length: 5 }, (_, i) =>
        toyRequest(round * 5 + i, (i * 3 + round) % 7, (i + round) % 6),
      );
      const batch = await model.run(
        requests.map((request) => toyItem(request)),
        'dense',
      );
      requests.forEach((request, i) => {
        const { heads, scores } = scoresOf(batch.items[i]);
        const expected = toyScores(request);
        expect(heads.map(({ name, values }) => [name, [...values]])).toEqual([
          ['click', expected.click],
          ['match', expected.match],
        ]);
        expect([...scores]).toEqual(expected.scores);
      });
    }
  });

  test('follow the hints of each request', async () => {
    const request = toyRequest(7, 3, 1);
    const batch = await model.run(
      [{ ...toyItem(request), hints: { weight: -1 } }, toyItem(request)],
      'dense',
    );
    expect(batch.items.map((item) => [...scoresOf(item).scores])).toEqual([
      toyScores(request, -1).scores,
      toyScores(request).scores,
    ]);
  });

  test('take rows that the request calls padding as they are, and the length that it says', async () => {
    const request = toyRequest(3, 2, 4);
    const item = toyItem(request);
    const shorter = {
      ...item,
      requestTensors: [...item.requestTensors, longTensor('history_length', [], [1])],
    };
    const [whole, cut] = (await model.run([item, shorter], 'dense')).items.map(scoresOf);
    expect(cut?.heads[0]?.values[0]).toBe((whole?.heads[0]?.values[0] ?? 0) - 3);
  });

  test('report time and bytes', async () => {
    const batch = await model.run([toyItem(toyRequest(1, 4, 2))], 'dense');
    expect(batch.computeMs).toBeGreaterThan(0);
    expect(batch.bytesMoved).toBeGreaterThanOrEqual(3 * 4 + 8 + 2 * 8 + 8 + 4 * 12 + 4 * 8 + 2 * 4 * 4);
  });
});

describe('an item that fails', () => {
  test('in the graph fails alone', async () => {
    const [first, last] = [toyRequest(1, 2, 1), toyRequest(3, 1, 2)];
    const items = [toyItem(first), poison(toyItem(toyRequest(2, 3, 0))), toyItem(last)];
    const batch = await model.run(items, 'dense');
    expect(batch.items[1]).toMatchObject({ status: 'failed', alone: true, error: { code: 'MODEL_FAILED' } });
    expect([...scoresOf(batch.items[0]).scores]).toEqual(toyScores(first).scores);
    expect([...scoresOf(batch.items[2]).scores]).toEqual(toyScores(last).scores);
  });

  test('in the graph, beside one that is not even tried, fails by itself', async () => {
    const item = toyItem(toyRequest(1, 2, 1));
    const batch = await model.run(
      [poison(item), { ...item, candidateTensors: [] }, { ...item, scoreLimit: 0 }],
      'dense',
    );
    expect(batch.items).toMatchObject([
      { status: 'failed', error: { code: 'MODEL_FAILED' } },
      { status: 'failed', error: { code: 'INVALID_TENSOR' } },
      { status: 'scored' },
    ]);
  });

  test('like all others of its batch fails the batch', async () => {
    const item = poison(toyItem(toyRequest(1, 2, 1)));
    await expect(model.run([item], 'dense')).rejects.toMatchObject({ code: 'MODEL_FAILED', retryable: true });
    await expect(model.run([item, item], 'dense')).rejects.toMatchObject({ code: 'MODEL_FAILED' });
  });

  test('by an output that is not finite fails alone', async () => {
    const request = toyRequest(1, 2, 0);
    const huge = toyItem({
      ...request,
      user: [3e38, 3e38, 3e38],
      items: [
        [0, 0, 0],
        [3e38, 3e38, 3e38],
      ],
    });
    const batch = await model.run([huge, toyItem(request)], 'dense');
    expect(batch.items).toMatchObject([
      { status: 'failed', error: { code: 'NON_FINITE', message: expect.stringContaining('candidate 1') } },
      { status: 'scored' },
    ]);
  });

  test('by a hint that is not finite fails alone', async () => {
    const item = toyItem(toyRequest(1, 2, 0));
    const batch = await model.run([{ ...item, hints: { weight: Number.NaN } }, item], 'dense');
    expect(batch.items).toMatchObject([
      { status: 'failed', error: { code: 'NON_FINITE' } },
      { status: 'scored' },
    ]);
  });
});

describe('a bad model is refused, and what is loaded goes on', () => {
  test.each(BAD_MODELS.map(([what, , reason], i) => ({ what, family: `bad${i}`, reason })))(
    '$what',
    async ({ family, reason }) => {
      const refusal: unknown = await accelerator.load(family, '1').catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 'INVALID_MODEL', message: expect.stringMatching(reason) });
      expect(String(refusal).length).toBeLessThan(2_000);
      const request = toyRequest(1, 2, 1);
      const batch = await model.run([toyItem(request)], 'dense');
      expect([...scoresOf(batch.items[0]).scores]).toEqual(toyScores(request).scores);
    },
  );
});

test('two versions are loaded side by side', async () => {
  const models = [await accelerator.load('toy', '1'), await accelerator.load('toy', '2')];
  expect(models.map(({ version, variant }) => [version, variant])).toEqual([
    ['1', 'baseline'],
    ['2', 'enhanced'],
  ]);
  await models[0]?.unload();
  expect((await models[1]?.run([toyItem(toyRequest(1, 2, 1))], 'dense'))?.items[0]?.status).toBe('scored');
});

test('predicts C_R per request and C_C per candidate, at the typical number of rows', async () => {
  const perRequest = 0.1 + 4 * 0.001;
  const perCandidate = 0.01 + 4 * 0.0001;
  expect(model.predictMs(1, 0)).toBeCloseTo(perRequest);
  expect(model.predictMs(3, 50)).toBeCloseTo(3 * perRequest + 50 * perCandidate);
  expect(model.predictMs(0, 0)).toBe(0);
});

describe('the thread', () => {
  const start = async (): Promise<Accelerator> => {
    const repository = await openRepository(join(import.meta.dirname, '../../../../models/repository'));
    return createOnnxCpuAccelerator({ repository, clock: systemClock() });
  };

  test('leaves the event loop free while a batch is computed', async () => {
    const opened = await start();
    const ranker = await opened.load('ranker', '1');
    const items = Array.from({ length: 32 }, (_, i) => rankerItem(i, 1000, 20));
    let done = false;
    const batch = ranker.run(items, 'dense').finally(() => {
      done = true;
    });
    let turns = 0;
    for (; !done; turns++) await nextTurn();
    expect((await batch).items.every(({ status }) => status === 'scored')).toBe(true);
    // On the loop's own thread the computation would be one turn, and its answer the next.
    expect(turns).toBeGreaterThan(10);
    await opened.close();
  });

  test('ends after the batches that run when the accelerator is closed', async () => {
    const opened = await start();
    const ranker = await opened.load('ranker', '1');
    const running = ranker.run([rankerItem(1, 2, 1)], 'dense');
    await opened.close();
    expect((await running).items[0]?.status).toBe('scored');
    await expect(ranker.run([rankerItem(1, 2, 1)], 'dense')).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(opened.load('ranker', '1')).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
