import fc from 'fast-check';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import type { AttributeProto } from '../../../../src/inference/onnx-file/onnx-proto.ts';
import { floatAttribute, intAttribute, writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { cutProducts } from '../../../../src/inference/sparse-kernel/cut-products.ts';
import { openBehindProducts } from '../../../../src/inference/sparse-kernel/open-behind-products.ts';
import { GraphBuilder } from '../rocs/graph-builder.ts';

const [K, H] = [9, 6];

type Build = (b: GraphBuilder, x: string) => string;

const product =
  (op: string, added: (b: GraphBuilder) => string[], ...attributes: AttributeProto[]): Build =>
  (b, x) =>
    b.node(op, [x, b.weights([K, H]), ...added(b)], attributes, 'first');

/** Graphs of one input x [N, 9] whose first layer gives [N, 6]. */
const CUT: [string, Build][] = [
  ['MatMul', product('MatMul', () => [])],
  ['Gemm', product('Gemm', () => [])],
  ['Gemm that adds a row', product('Gemm', (b) => [b.weights([H])])],
  ['Gemm that adds a row of rank 2', product('Gemm', (b) => [b.weights([1, H])])],
  ['Gemm that adds one number', product('Gemm', (b) => [b.weights([1])])],
  ['Gemm that adds a column of the call', product('Gemm', (b) => [b.input('more', 1)])],
  ['Gemm that adds rows of the call', product('Gemm', (b) => [b.input('more', H)])],
  [
    'Gemm with factors',
    product('Gemm', (b) => [b.weights([H])], floatAttribute('alpha', 0.25), floatAttribute('beta', -3)),
  ],
  [
    'Gemm of turned weights',
    (b, x) => b.node('Gemm', [x, b.weights([H, K]), b.weights([H])], [intAttribute('transB', 1)], 'first'),
  ],
  [
    'two products, and a node that reads the input as it is',
    (b, x) => {
      const sum = b.node('ReduceSum', [x, b.numbers(1)], [], 'sum');
      return b.node('Add', [
        b.node('Add', [product('MatMul', () => [])(b, x), b.node('Gemm', [x, b.weights([K, 1])])]),
        sum,
      ]);
    },
  ],
];

function graphOf(
  build: Build,
  then: (b: GraphBuilder, y: string) => string = (b, y) => b.node('Tanh', [y]),
): OnnxGraph {
  const b = new GraphBuilder(5);
  const x = b.input('x', K);
  const first = build(b, x);
  return b.build({ from: then(b, first), shape: [H] });
}

async function runWhole(graph: OnnxGraph, feeds: Record<string, Tensor>): Promise<Float32Array> {
  const session = await InferenceSession.create(writeGraph(graph));
  const results = await session.run(feeds);
  await session.release();
  return results[graph.outputs[0]?.name ?? '']?.data as Float32Array;
}

async function runCut(graph: OnnxGraph, feeds: Record<string, Tensor>): Promise<Float32Array> {
  const opened = openBehindProducts(writeGraph(graph), ['x']);
  if (opened.kind === 'refused') throw new Error(opened.why);
  const x = feeds['x']?.data as Float32Array<ArrayBuffer>;
  const dims = [...(feeds['x']?.dims ?? [])];
  const { multiplied } = opened.firstLayer.run(x.buffer, [{ name: 'x', datatype: 'FP32', offset: 0, dims }]);
  const session = await InferenceSession.create(opened.rest);
  const given = Object.entries(feeds).filter(([name]) => session.inputNames.includes(name));
  const firsts = multiplied.map(({ name, values, dims: shape }): [string, Tensor] => [
    name,
    new Tensor('float32', values, shape),
  ]);
  const results = await session.run(Object.fromEntries([...given, ...firsts]));
  await session.release();
  return results[graph.outputs[0]?.name ?? '']?.data as Float32Array;
}

function feedsFor(graph: OnnxGraph, rows: number, zeroShare: number, seed: number): Record<string, Tensor> {
  const random = seededRandom(seed).stream('feeds');
  return Object.fromEntries(
    graph.inputs.map(({ name, shape }) => {
      const dims = (shape ?? []).map((size) => (typeof size === 'number' ? size : rows));
      const length = dims.reduce((product_, size) => product_ * size, 1);
      const values = Float32Array.from({ length }, () =>
        random.next() < zeroShare ? 0 : random.next() * 2 - 1,
      );
      return [name, new Tensor('float32', values, dims)];
    }),
  );
}

describe('a graph that is cut behind its first layer', () => {
  test.each(CUT)('computes the same: %s', async (_, build) => {
    const graph = graphOf(build);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom(0, 0.5, 0.95, 1),
        fc.nat(),
        async (rows, zeroShare, seed) => {
          const feeds = feedsFor(graph, rows, zeroShare, seed);
          const [got, want] = [await runCut(graph, feeds), await runWhole(graph, feeds)];
          expect(got).toHaveLength(rows * H);
          want.forEach((value, n) => {
            expect(Math.abs((got[n] ?? Number.NaN) - value)).toBeLessThanOrEqual(
              1e-5 * Math.max(0.1, Math.abs(value)),
            );
          });
        },
      ),
      { numRuns: 10 },
    );
  });

  test('keeps the product’s name where it is an output of the model', async () => {
    const graph = graphOf(
      product('MatMul', () => []),
      (_, y) => y,
    );
    const feeds = feedsFor(graph, 3, 0.5, 1);
    expect(await runCut(graph, feeds)).toEqual(await runWhole(graph, feeds));
  });

  test('multiplies every row of an input of more axes', async () => {
    const b = new GraphBuilder(2);
    const first = b.node('MatMul', [b.input('x', 4, K), b.weights([K, H])]);
    const graph = b.build({ from: b.node('Tanh', [first]), shape: [4, H] });
    const feeds = feedsFor(graph, 3, 0.5, 1);
    const [got, want] = [await runCut(graph, feeds), await runWhole(graph, feeds)];
    want.forEach((value, n) => {
      expect(got[n]).toBeCloseTo(value, 5);
    });
  });

  test('adds what is an input of candidates, too, wherever it stands among the inputs', () => {
    const b = new GraphBuilder();
    const more = b.input('more', H);
    const first = b.node('Gemm', [b.input('x', K), b.weights([K, H]), more], [], 'first');
    const graph = b.build({ from: b.node('Relu', [first]), shape: [H] });
    const cut = cutProducts(graph, ['more', 'x']);
    expect(cut).toMatchObject({ kind: 'cut', products: [{ input: 'x' }] });
    expect(cut.kind === 'cut' && cut.rest.inputs.map(({ name }) => name)).toContain('more');
  });

  test('drops an input that nothing reads any more, and no other', () => {
    const inputsOf = (build: Build): string[] => {
      const cut = cutProducts(graphOf(build), ['x']);
      return cut.kind === 'cut' ? cut.rest.inputs.map(({ name }) => name) : [];
    };
    expect(inputsOf(product('MatMul', () => []))).not.toContain('x');
    expect(
      inputsOf((b, x) => b.node('Add', [product('MatMul', () => [])(b, x), b.node('ReduceSum', [x])])),
    ).toContain('x');
  });
});

describe('a graph that has no such layer is refused with the node’s name', () => {
  const refusals: [string, Build, RegExp][] = [
    [
      'no product',
      (b, x) => b.node('Mul', [x, b.weights([K])], [], 'scale'),
      /node scale, Mul.*no product of a matrix/,
    ],
    [
      'two inputs',
      (b, x) => b.node('MatMul', [x, b.input('w', H)], [], 'first'),
      /node first, MatMul.*w is no matrix of FP32 that the file holds/,
    ],
    ['weights of rank 3', (b, x) => b.node('MatMul', [x, b.weights([2, K, H])], [], 'first'), /node first/],
    [
      'a turned input',
      (b, x) => b.node('Gemm', [x, b.weights([K, H])], [intAttribute('transA', 1)], 'first'),
      /node first, Gemm.*it turns its input/,
    ],
    [
      'rows of another size',
      (b, x) => b.node('MatMul', [x, b.weights([K + 1, H])], [], 'first'),
      /the rows of x are not of 10 values/,
    ],
    [
      'too many columns',
      (b, x) => b.node('MatMul', [x, b.weights([K, 5_000])], [], 'first'),
      /\[9, 5000\], of at most \[65536, 4096\]/,
    ],
    [
      'what is added scaled',
      (b, x) =>
        b.node('Gemm', [x, b.weights([K, H]), b.input('more', H)], [floatAttribute('beta', 2)], 'first'),
      /it scales more by beta/,
    ],
    ['the input on the right', (b, x) => b.node('MatMul', [b.weights([2, 3]), x], [], 'first'), /node first/],
    [
      'an input that nothing reads',
      (b) => b.node('Relu', [b.input('other', H)]),
      /no candidate input of FP32 that a node reads/,
    ],
  ];
  test.each(refusals)('%s', (_, build, why) => {
    const cut = cutProducts(graphOf(build), ['x']);
    expect(cut).toMatchObject({ kind: 'refused', why: expect.stringMatching(why) });
  });

  test('rows that are too wide for the places of a row', () => {
    const b = new GraphBuilder();
    const first = b.node('MatMul', [b.input('x', 65_537), b.weights([65_537, 1])], [], 'first');
    const graph = b.build({ from: b.node('Relu', [first]), shape: [1] });
    expect(cutProducts(graph, ['x'])).toMatchObject({
      why: expect.stringContaining('[65537, 1], of at most'),
    });
  });

  test('inputs that are not named stay as they are', () => {
    expect(cutProducts(graphOf(product('MatMul', () => [])), ['y'])).toMatchObject({ kind: 'refused' });
  });

  test('a file that cannot be read here is refused with the reason', () => {
    expect(openBehindProducts(Uint8Array.of(1, 2, 3), ['x'])).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('not an ONNX model'),
    });
  });
});
