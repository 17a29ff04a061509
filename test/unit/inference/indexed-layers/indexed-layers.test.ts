import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { IndexedLayers } from '../../../../src/inference/indexed-layers/indexed-layers.ts';
import { isSmallBatch, workOf } from '../../../../src/inference/indexed-layers/layer-plan.ts';
import { openLayers } from '../../../../src/inference/indexed-layers/open-layers.ts';
import { planLayers } from '../../../../src/inference/indexed-layers/plan-layers.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { floatAttribute, intAttribute, writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { compileGraph } from '../../../../src/inference/rocs/compile.ts';
import { openOneGraph } from '../../../../src/inference/rocs/forms.ts';
import { sharedFeeds, trialBatch } from '../../../../src/inference/rocs/trial-batch.ts';
import { GraphBuilder } from '../rocs/graph-builder.ts';
import { crossNetwork, layered, type Model, perceptron, sumOfProducts, twoTowers } from '../rocs/models.ts';
import { slabOf } from './slab.ts';

const ROWS = { request: ['user'], candidate: ['item'], requestIndex: 'request_index' };
const TOLERANCE = 1e-5;

function compiled({ graph, groups }: Model): OnnxGraph {
  return compileGraph(graph, groups, { strict: false, attention: 'tiles' }).graph;
}

function opened(model: Model): IndexedLayers {
  const planned = planLayers(compiled(model), ROWS);
  if (planned.kind === 'refused') throw new Error(planned.why);
  return new IndexedLayers(planned.plan);
}

interface Sizes {
  requests: number;
  requestOf: readonly number[];
}

function batchOf({ graph, groups }: Model, sizes: Sizes, seed: number) {
  const random = seededRandom(seed).stream('batch');
  return trialBatch(graph, groups, { ...sizes, sequence: 1 }, random);
}

function scoresOf(layers: IndexedLayers, model: Model, batch: ReturnType<typeof batchOf>): Float32Array[] {
  const names = model.graph.outputs.map(({ name }) => name);
  const call = slabOf(sharedFeeds(batch, ['', 'request_index']), names, batch.requestOf.length);
  layers.run(call.slab, call.feeds, call.outputs);
  return call.outputs.map(({ offset, dims }) => new Float32Array(call.slab, offset, dims[0]));
}

const widths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 0, maxLength: 3 });
const model = fc
  .record({
    request: fc.integer({ min: 1, max: 70 }),
    candidate: fc.integer({ min: 1, max: 40 }),
    hidden: widths,
    heads: fc.integer({ min: 1, max: 8 }),
    scores: fc.constantFrom('sigmoid' as const, 'reciprocal' as const, 'none' as const),
    seed: fc.nat(1_000),
  })
  .map(({ request, candidate, hidden, heads, ...options }) =>
    layered(request, candidate, [...hidden, heads], options),
  );
/** Candidates in any order, and requests that have none. */
const sizes = fc.integer({ min: 1, max: 9 }).chain((requests) =>
  fc.record({
    requests: fc.constant(requests),
    requestOf: fc.array(fc.nat(requests - 1), { minLength: 1, maxLength: 40 }),
  }),
);

describe('layers in WebAssembly', () => {
  test('give the scores of the model as it was given, batch after batch', async () => {
    await fc.assert(
      fc.asyncProperty(
        model,
        fc.array(sizes, { minLength: 1, maxLength: 3 }),
        fc.nat(),
        async (m, batches, seed) => {
          const layers = opened(m);
          const forms = await openOneGraph(m.graph, m.groups, { strict: false });
          for (const each of batches) {
            const batch = batchOf(m, each, seed);
            const want = await forms.run.naive(forms.prepare(batch));
            const got = scoresOf(layers, m, batch);
            m.graph.outputs.forEach(({ name }, head) => {
              want.get(name)?.forEach((value, n) => {
                const off = Math.abs((got[head]?.[n] ?? Number.NaN) - value);
                expect(off).toBeLessThanOrEqual(TOLERANCE * Math.max(1, Math.abs(value)));
              });
            });
          }
          await forms.close();
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  const named: [string, Model][] = [
    ['sumOfProducts', sumOfProducts(9, 7, 5)],
    ['two biases', twoBiases()],
    ['a bias beside what is gathered', perceptron(9, 7, 5)],
  ];
  test.each(named)('understand other ways to write it: %s', async (_, given) => {
    const graph = withColumn(given);
    const layers = opened(graph);
    const forms = await openOneGraph(graph.graph, graph.groups, { strict: false });
    const batch = batchOf(graph, { requests: 2, requestOf: [1, 0, 1] }, 3);
    const [want] = [...(await forms.run.naive(forms.prepare(batch))).values()];
    const [got] = scoresOf(layers, graph, batch);
    want?.forEach((value, n) => {
      expect(got?.[n]).toBeCloseTo(value, 5);
    });
    await forms.close();
  });

  test('make room for a batch that is larger than those before', () => {
    const m = layered(5, 40, [9, 1]);
    const layers = opened(m);
    const requestOf = Array.from({ length: 3_000 }, (_, n) => n % 3);
    const large = batchOf(m, { requests: 3, requestOf }, 1);
    scoresOf(layers, m, batchOf(m, { requests: 1, requestOf: [0] }, 1));
    expect(scoresOf(layers, m, large)).toEqual(scoresOf(opened(m), m, large));
    expect(scoresOf(layers, m, large)[0]?.at(-1)).toBeGreaterThan(0);
  });

  test('NaN of a candidate is the score of no other', () => {
    const m = layered(5, 6, [8, 1]);
    const batch = batchOf(m, { requests: 2, requestOf: [0, 1, 1, 0, 1] }, 1);
    const before = scoresOf(opened(m), m, batch)[0];
    const item = batch.feeds['item']?.data as Float32Array;
    item[2 * 6 + 3] = Number.NaN;
    const after = scoresOf(opened(m), m, batch)[0];
    expect([...(after ?? [])]).toEqual([...(before ?? [])].map((value, n) => (n === 2 ? Number.NaN : value)));
  });

  test.each([2n, -1n, 2n ** 31n, 2n ** 32n])(
    'a candidate of request %s, of two, fails the call',
    (request) => {
      const m = layered(5, 6, [1]);
      const feeds = sharedFeeds(batchOf(m, { requests: 2, requestOf: [0, 0] }, 1), ['', 'request_index']);
      const index = feeds['request_index']?.data;
      if (index instanceof BigInt64Array) index[1] = request;
      const { slab, feeds: placed, outputs } = slabOf(feeds, [], 2);
      expect(() => opened(m).run(slab, placed, outputs)).toThrow(/candidate 1 is of request/);
    },
  );

  test('rows of another width fail the call', () => {
    const batch = batchOf(layered(5, 7, [1]), { requests: 1, requestOf: [0] }, 1);
    const m = layered(5, 6, [1]);
    expect(() => scoresOf(opened(m), m, batch)).toThrow('item is [1, 7], expected [1, 6]');
  });
});

function twoBiases(): Model {
  const b = new GraphBuilder();
  const sides = b.node('Concat', [b.input('user', 4), b.input('item', 3)], [intAttribute('axis', 1)]);
  const hidden = b.node('Relu', [b.node('MatMul', [sides, b.weights([7, 5])])]);
  const head = b.node('Gemm', [hidden, b.weights([5, 2]), b.weights([2])]);
  const from = b.node('Add', [b.weights([1, 2]), head]);
  return { graph: b.build({ from, shape: [2] }), groups: [['user'], ['item']] };
}

/** The first column of its output in place of the matrix. */
function withColumn({ graph, groups }: Model): Model {
  const [output] = graph.outputs;
  const from = output?.name ?? '';
  const squeezed = { ...graph.nodes.at(-1), op: 'Gather', name: 'column', inputs: [from, 'zero'] };
  return {
    groups,
    graph: {
      ...graph,
      constants: new Map([...graph.constants, ['zero', { type: 7, dims: [], bytes: new Uint8Array(8) }]]),
      nodes: [...graph.nodes, { ...squeezed, outputs: ['score'], attributes: [intAttribute('axis', 1)] }],
      outputs: [{ name: 'score', type: 1, shape: ['N'] }],
    },
  };
}

describe('what is no model of layers is refused with the node’s name', () => {
  type Build = (b: GraphBuilder, first: string) => string;
  const after = (build: Build): OnnxGraph => {
    const b = new GraphBuilder();
    const user = b.node('Gemm', [b.input('user', 4), b.weights([4, 3])], [], 'user_layer');
    const gathered = b.node('Gather', [user, 'request_index'], [], 'at_candidates');
    b.input('item', 5);
    const first = b.node('Gemm', ['item', b.weights([5, 3]), gathered], [], 'item_layer');
    return b.build({ from: build(b, first), shape: [] });
  };
  const score: Build = (b, x) =>
    b.node('Squeeze', [b.node('MatMul', [x, b.weights([3, 1])]), b.numbers(1)], [], 'score');
  const refusals: [string, Build, RegExp][] = [
    [
      'an operator of another kind',
      (b, x) => score(b, b.node('Tanh', [x], [], 'tanh')),
      /node tanh, Tanh: no layer/,
    ],
    ['a wide sigmoid', (b, x) => score(b, b.node('Sigmoid', [x], [], 'gate')), /node matmul.*is no row/],
    [
      'an activation that others go around',
      (b, x) => score(b, b.node('Add', [b.node('Relu', [x], [], 'relu'), x])),
      /node relu, Relu: others read/,
    ],
    [
      'a sum behind an activation',
      (b, x) => score(b, b.node('Add', [b.node('Relu', [x]), b.weights([3])], [], 'sum')),
      /node sum, Add: .* comes out of an activation/,
    ],
    [
      'another name for a layer that others read',
      (b, x) => score(b, b.node('Add', [b.node('Relu', [b.node('Identity', [x], [], 'alias')]), x])),
      /node relu_\d+, Relu: .* is no layer/,
    ],
    [
      'a residual',
      (b, x) => score(b, b.node('Add', [b.node('MatMul', [x, b.weights([3, 3])]), x], [], 'sum')),
      /node sum, Add: .* is not what a request has/,
    ],
    [
      'a scaled addend',
      (b, x) =>
        score(b, b.node('Gemm', [x, b.weights([3, 3]), 'gather_3'], [floatAttribute('beta', 2)], 'scaled')),
      /node scaled, Gemm: it scales gather_3 by beta/,
    ],
    [
      'a turned input',
      (b, x) => score(b, b.node('Gemm', [x, b.weights([3, 3])], [intAttribute('transA', 1)], 'turned')),
      /node turned, Gemm: it turns its rows/,
    ],
    [
      'weights that do not fit',
      (b, x) => score(b, b.node('MatMul', [x, b.weights([4, 3])], [], 'wide')),
      /node wide, MatMul: .* is no matrix of FP32 for rows of 3/,
    ],
    [
      'rows that are gathered by something else',
      (b, x) => score(b, b.node('Gather', [x, b.numbers(0, 1)], [], 'picked')),
      /node picked, Gather/,
    ],
    [
      'a matrix of scores',
      (b, x) => b.node('MatMul', [x, b.weights([3, 2])], [], 'two'),
      /output matmul_\d+ is no column of scores/,
    ],
  ];
  test.each(refusals)('%s', (_, build, why) => {
    expect(planLayers(after(build), ROWS)).toMatchObject({
      kind: 'refused',
      why: expect.stringMatching(why),
    });
  });

  test.each([
    ['cross layers', crossNetwork(6, 4, 1)],
    ['a product of two towers', twoTowers(6, 4, 5)],
  ])('%s', (_, m) => {
    expect(planLayers(compiled(m), ROWS).kind).toBe('refused');
  });

  test('and one whose smallest batch is large is not kept', () => {
    const large = compiled(layered(400, 200, [500, 1]));
    expect(openLayers(writeGraph(large), ROWS)).toEqual({ kind: 'refused', why: 'no batch of it is small' });
    const small = compiled(layered(40, 20, [50, 1]));
    expect(openLayers(writeGraph(small), ROWS)).toMatchObject({ kind: 'opened' });
  });

  test('the file that is none is refused, too', () => {
    expect(openLayers(Uint8Array.of(1, 2, 3), ROWS).kind).toBe('refused');
  });
});

test.each([
  [16, 128, true],
  [16, 256, false],
  [64, 128, false],
])('a batch is small by the multiplications of all its rows: %j and %j', (requests, candidates, isSmall) => {
  const planned = planLayers(compiled(layered(64, 32, [32, 1])), ROWS);
  if (planned.kind === 'refused') throw new Error(planned.why);
  const work = workOf(planned.plan);
  expect(work).toEqual({ perRequest: 64 * 32, perCandidate: 32 * 32 + 32 });
  expect(isSmallBatch(work, requests, candidates)).toBe(isSmall);
});
