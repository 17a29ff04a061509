/**
 * A version of random, seeded weights whose candidates are wide and mostly zeros, as one-hot and bag-of-words features are:
 *
 *   click = σ(w₃ · relu(W₂ · relu(W_item · item + W_user · user)))
 *
 * The request's part comes to the candidates as what a Gemm adds, as `millrace model compile` has it.
 */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { float32, int64 } from '../../../../src/inference/onnx-file/constant.ts';
import type { OnnxConstant, OnnxGraph, OnnxNode } from '../../../../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import type { ScoreItem } from '../../../../src/ports/accelerator.ts';
import { floatTensor, toyConfig, toyCost, writeVersion } from '../toy-model.ts';

export interface WideSizes {
  /** K: values of a candidate. */
  inner: number;
  /** H: of the first layer. */
  columns: number;
}

const USER = 8;
const HIDDEN = 16;
const [FLOAT, INT64] = [1, 7];

export function wideGraph({ inner, columns }: WideSizes, seed = 1): OnnxGraph {
  const random = seededRandom(seed).stream('weights');
  const weights = (...dims: number[]): OnnxConstant => {
    const size = dims.reduce((product, each) => product * each, 1);
    const scale = Math.sqrt(3 / (dims[0] ?? 1));
    return float32(
      dims,
      Array.from({ length: size }, () => (random.next() * 2 - 1) * scale),
    );
  };
  const constants = new Map<string, OnnxConstant>([
    ['userWeights', weights(USER, columns)],
    ['itemWeights', weights(inner, columns)],
    ['hiddenWeights', weights(columns, HIDDEN)],
    ['headWeights', weights(HIDDEN, 1)],
    ['lastAxis', int64([1], [1])],
  ]);
  const node = (op: string, inputs: string[], output: string): OnnxNode => ({
    op,
    name: output,
    inputs,
    outputs: [output],
    attributes: [],
  });
  return {
    name: 'wide, random',
    irVersion: 10n,
    opset: 20,
    inputs: [
      { name: 'user', type: FLOAT, shape: ['B', USER] },
      { name: 'item', type: FLOAT, shape: ['N', inner] },
      { name: 'request_index', type: INT64, shape: ['N'] },
    ],
    outputs: [{ name: 'click', type: FLOAT, shape: ['N'] }],
    constants,
    nodes: [
      node('MatMul', ['user', 'userWeights'], 'ofUser'),
      node('Gather', ['ofUser', 'request_index'], 'ofUserByCandidate'),
      node('Gemm', ['item', 'itemWeights', 'ofUserByCandidate'], 'first'),
      node('Relu', ['first'], 'firstActive'),
      node('MatMul', ['firstActive', 'hiddenWeights'], 'hidden'),
      node('Relu', ['hidden'], 'hiddenActive'),
      node('MatMul', ['hiddenActive', 'headWeights'], 'head'),
      node('Sigmoid', ['head'], 'probability'),
      node('Squeeze', ['probability', 'lastAxis'], 'click'),
    ],
  };
}

/** A request whose candidates have that share of zeros. */
export function wideItem(
  { inner }: WideSizes,
  { seed, candidates, zeroShare }: { seed: number; candidates: number; zeroShare: number },
): ScoreItem {
  const random = seededRandom(seed).stream('item');
  const user = Array.from({ length: USER }, () => random.next() * 2 - 1);
  return {
    requestTensors: [floatTensor('user', [USER], user)],
    candidateTensors: [
      floatTensor('item', [candidates, inner], sparseValues(random, candidates * inner, zeroShare)),
    ],
    hints: {},
    scoreLimit: candidates,
  };
}

export function sparseValues(random: { next(): number }, count: number, zeroShare: number): number[] {
  return Array.from({ length: count }, () => (random.next() < zeroShare ? 0 : random.next() * 2 - 1));
}

/** Writes it under `root` as `wide/1`, its golden case computed by the whole graph. */
export async function writeWideVersion(root: string, sizes: WideSizes): Promise<void> {
  const graph = writeGraph(wideGraph(sizes));
  const head = { datatype: 'FP32', axes: ['candidate'], shape: [-1], meaning: 'of a test' };
  const config = {
    ...toyConfig(graph),
    family: 'wide',
    description: 'random weights, for tests and benchmarks',
    inputs: [
      { name: 'user', side: 'request', datatype: 'FP32', shape: [-1, USER], axes: ['request', 'feature'] },
      {
        name: 'item',
        side: 'candidate',
        datatype: 'FP32',
        shape: [-1, sizes.inner],
        axes: ['candidate', 'feature'],
      },
      { name: 'request_index', side: 'index', datatype: 'INT64', shape: [-1], axes: ['candidate'] },
    ],
    heads: [{ name: 'click', probability: true, ...head }],
    hints: [],
    rankBy: 'click',
    limits: { candidatesMax: 4_096, sequenceLengthMax: 8, tensorBytesMax: 256 * 1024 * 1024 },
  };
  const files = {
    graph,
    config,
    cost: { ...toyCost(), family: 'wide', features: ['1', 'N'], coefficients: [0.1, 0.01] },
    golden: await golden(graph, sizes),
  };
  await writeVersion(root, files as never, 'wide/1');
}

async function golden(graph: Uint8Array, { inner }: WideSizes) {
  const [requests, requestOf] = [2, [0, 1, 0, 1, 1]];
  const random = seededRandom(7).stream('golden');
  const tensors = {
    user: new Tensor('float32', Float32Array.from(sparseValues(random, requests * USER, 0)), [
      requests,
      USER,
    ]),
    item: new Tensor('float32', Float32Array.from(sparseValues(random, requestOf.length * inner, 0.9)), [
      requestOf.length,
      inner,
    ]),
    request_index: new Tensor('int64', BigInt64Array.from(requestOf, BigInt), [requestOf.length]),
  };
  const session = await InferenceSession.create(graph);
  const { click } = await session.run(tensors);
  await session.release();
  if (click === undefined) throw new Error('the graph gives no click');
  const shown = ({ type, dims, data }: Tensor) => ({
    datatype: type === 'int64' ? 'INT64' : 'FP32',
    shape: [...dims],
    base64: bytesOf(data as Float32Array).toString('base64'),
  });
  return {
    format: 1,
    family: 'wide',
    version: 1,
    synthetic: true,
    tolerance: { relative: 1e-5, absolute: 1e-6 },
    cases: [
      {
        name: 'two requests',
        inputs: Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, shown(tensor)])),
        outputs: { click: shown(click) },
        scores: shown(click),
      },
    ],
  };
}

function bytesOf(values: ArrayBufferView): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}
