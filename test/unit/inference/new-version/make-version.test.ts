import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../../../src/cli/request-file.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { readGraph } from '../../../../src/inference/onnx-file/read-graph.ts';
import { intAttribute } from '../../../../src/inference/onnx-file/write-graph.ts';
import { GraphBuilder } from '../rocs/graph-builder.ts';
import {
  crossNetwork,
  deepCrossAttention,
  factorizationMachine,
  linearCompression,
  type Model,
  perceptron,
  sumOfProducts,
  twoTowers,
} from '../rocs/models.ts';
import { loaded, made, type Said } from './make.fixture.ts';
import { expanded, lessTheMean, pooledHistory, sumOfLayers, withShapes } from './small-models.ts';

const size = fc.integer({ min: 1, max: 9 });
const MODELS: readonly [string, fc.Arbitrary<Model>][] = [
  [
    'a masked cross network',
    fc.tuple(size, size, fc.integer({ min: 1, max: 3 })).map((each) => crossNetwork(...each)),
  ],
  ['a perceptron', fc.tuple(size, size, size).map((each) => perceptron(...each))],
  ['two towers', fc.tuple(size, size, size).map((each) => twoTowers(...each))],
  ['a factorization machine', fc.tuple(size, size, size).map((each) => factorizationMachine(...each))],
  [
    'a linear compression',
    fc.tuple(fc.integer({ min: 2, max: 4 }), size, size).map((each) => linearCompression(...each)),
  ],
  [
    'cross attention',
    fc
      .tuple(size, fc.constantFrom(4, 8), fc.integer({ min: 1, max: 2 }), fc.constantFrom(undefined, 2))
      .map(([length, width, layers, heads]) => deepCrossAttention(length, width, layers, heads, true)),
  ],
];

describe('a version made of a model file', () => {
  it.each(MODELS)('of %s passes the check of a worker, whatever its sizes', async (_, models) => {
    await fc.assert(
      fc.asyncProperty(models, fc.integer({ min: 0, max: 1e6 }), async ({ graph, groups }, seed) => {
        const [head] = graph.outputs;
        const rankBy = head?.shape?.length === 2 ? `${head.name}_0 - ${head.name}_1` : undefined;
        const version = await made(graph, { requestInputs: groups[0] ?? [], seed, words: { rankBy } });
        expect(version.sharing.sharing).toBe('compiled');
        await loaded(version);
      }),
      { numRuns: 3 },
    );
  });

  it.each<[string, OnnxGraph, Said, string]>([
    ['a row of the request for each candidate', sumOfLayers('each'), { requestInputs: ['user'] }, 'compiled'],
    ['one row of the request', sumOfLayers('one'), {}, 'compiled'],
    ['a request without an axis for rows', sumOfLayers('none'), {}, 'compiled'],
    ['rows of another name', sumOfLayers('batch'), {}, 'compiled'],
    ['one row that is expanded', expanded('one'), {}, 'compiled'],
    ['a request that gets its axis in the graph', expanded('none'), {}, 'compiled'],
    ['rows of another name that are expanded', expanded('batch'), {}, 'compiled'],
    ['copies', sumOfLayers('one'), { share: false }, 'copies'],
    ['candidates alone', sumOfLayers('each'), { candidateInputs: ['user', 'item'] }, 'nothing'],
    [
      'layers without a mask',
      crossNetwork(6, 3, 2, { masked: false }).graph,
      { requestInputs: ['user'], unmasked: true },
      'compiled',
    ],
    [
      'attention over a sequence of one size',
      deepCrossAttention(9, 8, 1).graph,
      { candidateInputs: ['item'], sizes: new Map([['T', 7]]) },
      'compiled',
    ],
    [
      'wide candidates',
      sumOfProducts(16, 1_024, 64).graph,
      { requestInputs: ['user'], words: { candidatesMax: 16 } },
      'compiled',
    ],
    ['a sequence with its length', pooledHistory(), { candidateInputs: ['item'] }, 'compiled'],
    ['a sequence, copied', pooledHistory(), { candidateInputs: ['item'], share: false }, 'copies'],
  ])('is made of a file with %s', async (_, graph, said, sharing) => {
    const version = await made(graph, said);
    expect(version.sharing.sharing).toBe(sharing);
    await loaded(version);
  });

  it('asks for a sequence without which there are no scores', async () => {
    const version = await made(pooledHistory({ mean: true }), { candidateInputs: ['item'] });
    expect(version.emptySequences).toBe(false);
    const { version: read } = await loaded(version);
    expect(read.inputs[0]).toMatchObject({ name: 'history', required: true });
  });

  it('does not take ids for what counts the rows of a sequence', async () => {
    const version = await made(renamed(pooledHistory(), 'history_length', 'rows'), {
      candidateInputs: ['item'],
    });
    const lengths = version.plan.inputs.map(({ name, lengthOf }) => [name, lengthOf]);
    expect(lengths).toContainEqual(['rows', 'history']);
    expect(lengths).toContainEqual(['segment', undefined]);
  });

  it('scores its own example request', async () => {
    const version = await made(pooledHistory(), { candidateInputs: ['item'] });
    const { model } = await loaded(version);
    const request = parseRequest(JSON.parse(String(version.files.get('request.json'))), 'request.json');
    expect(request).toMatchObject({ model: 'made', baselineCandidates: 3 });
    const { requestTensors = [], candidateTensors = [] } = request;
    const item = { requestTensors, candidateTensors, hints: {}, scoreLimit: 3 };
    const { items } = await model.run([item], 'dense');
    expect(items).toMatchObject([{ status: 'scored' }]);
  });

  it('is made of what compile wrote, as it is', async () => {
    const { files } = await made(pooledHistory(), { candidateInputs: ['item'] });
    const compiled = readGraph(Buffer.from(files.get('model.onnx') ?? ''));
    const again = await made(compiled);
    expect(again.sharing.sharing).toBe('given');
    expect(again.plan.inputs.map(({ name, side }) => `${name} ${side}`)).toEqual([
      'history request',
      'history_length request',
      'segment request',
      'item candidate',
    ]);
    await loaded(again);
  });

  it('says in the config what it found', async () => {
    const version = await made(pooledHistory(), { candidateInputs: ['item'], words: { rankBy: undefined } });
    const { version: read } = await loaded(version);
    expect(read.inputs).toMatchObject([
      { name: 'history', side: 'request', datatype: 'FP32', shape: [-1, 4], required: false },
      { name: 'history_length', side: 'request-length', lengthOf: 'history' },
      { name: 'segment', side: 'request', datatype: 'INT64', shape: [], required: true },
      { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, 4] },
      { name: 'request_index', side: 'request-index' },
    ]);
    // 16 rows of 4 floats, a length, an id, 128 candidates of 4 floats.
    expect(read.limits.tensorBytesMax).toBe(16 * 16 + 8 + 8 + 128 * 16);
    expect(version.heads).toMatchObject([{ probability: false }]);
    expect((await made(sumOfLayers('one'))).heads).toMatchObject([{ probability: true }]);
  });

  it('is the same from the same seed but for what was measured', async () => {
    const [one, same, other] = await Promise.all([7, 7, 8].map((seed) => made(sumOfLayers('one'), { seed })));
    for (const name of ['model.onnx', 'config.yaml', 'golden.json', 'request.json'])
      expect(same?.files.get(name)).toEqual(one?.files.get(name));
    expect(other?.files.get('golden.json')).not.toEqual(one?.files.get('golden.json'));
  });

  it.each<[string, OnnxGraph, Said, RegExp]>([
    [
      'reads rows of padding',
      pooledHistory({ masked: false }),
      { candidateInputs: ['item'] },
      /scores change with rows of padding.*history_length.*--size/,
    ],
    [
      'lets candidates change one another, compiled',
      lessTheMean(),
      { requestInputs: ['user'] },
      /node reducemean_2.*reach another/,
    ],
    [
      'lets candidates change one another, copied',
      lessTheMean(),
      { requestInputs: ['user'], share: false },
      /scores of a request change with the other requests of a call/,
    ],
    [
      'has a layer without a mask',
      crossNetwork(6, 3, 2, { masked: false }).graph,
      { requestInputs: ['user'] },
      /node cross_0.*--unmasked/,
    ],
    [
      'has more than one head and no way to rank',
      perceptron(3, 3, 4).graph,
      { requestInputs: ['user'] },
      /more than one head.*--rank-by/,
    ],
    [
      'has a sequence that nothing counts',
      deepCrossAttention(9, 8, 1).graph,
      { candidateInputs: ['item'] },
      /history has as many rows .*--size T=<n>/,
    ],
    [
      'takes one candidate at a time',
      withShapes(sumOfLayers('each'), { item: [1, 4] }),
      { candidateInputs: ['item'] },
      /input item has no axis that counts candidates .*\[1, 4\]/,
    ],
    [
      'gives no number for made-up inputs',
      withRoot(sumOfLayers('one')),
      { outputs: ['root'] },
      /head root_0 of a made-up request is no number .*"NaN".*between -1 and 1/,
    ],
    ['has no such output', sumOfLayers('one'), { outputs: ['click'] }, /no such output.*click.*sigmoid/],
    [
      'ranks by what it has not',
      sumOfLayers('one'),
      { words: { rankBy: 'click' } },
      /rankBy does not know click/,
    ],
  ])('is not made of a model that %s', async (_, graph, said, reason) => {
    await expect(made(graph, said)).rejects.toThrow(reason);
  });
});

function renamed(graph: OnnxGraph, from: string, to: string): OnnxGraph {
  const rename = (name: string): string => (name === from ? to : name);
  return {
    ...graph,
    inputs: graph.inputs.map((input) => ({ ...input, name: rename(input.name) })),
    nodes: graph.nodes.map((node) => ({ ...node, inputs: node.inputs.map(rename) })),
  };
}

/** The graph with the square roots of its candidates' numbers as an output. */
function withRoot(graph: OnnxGraph): OnnxGraph {
  const node = { op: 'Sqrt', name: 'root', inputs: ['item'], outputs: ['root'], attributes: [] };
  const output = { name: 'root', type: 1, shape: ['N', 4] };
  return { ...graph, nodes: [...graph.nodes, node], outputs: [...graph.outputs, output] };
}

it('is tried with no more candidates than a request has room for', async () => {
  // A row of 64 KiB: 15 of them, beside the user, are as many as fit.
  const b = new GraphBuilder();
  const [user, item] = [b.input('user', 1), b.input('item', 16_384)];
  const sums = b.node('ReduceSum', [item, b.numbers(1)], [intAttribute('keepdims', 1)]);
  const graph = withShapes(b.build({ from: b.node('Sigmoid', [b.node('Mul', [user, sums])]), shape: [1] }), {
    user: [1, 1],
  });
  const { cost, limits, files } = await made(graph, { words: { candidatesMax: 2_048 } });
  expect([...cost.grid.N, ...cost.grid.heldOutN].every((size) => size <= 15)).toBe(true);
  expect(limits.candidatesMax).toBe(2_048);
  expect(files.get('golden.json')).toBeDefined();
});
