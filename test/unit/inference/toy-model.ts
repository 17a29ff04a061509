/**
 * A tiny model family with every kind of input, written by hand, whose outputs a few lines of TypeScript compute too:
 *
 *   match = Σ user · item        click = match + weights[segment] + Σ history + history_length
 *
 * A `segment` outside of 0 … 3 makes the graph itself fail: poison that no check of the tensors can see.
 */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Tensor } from '../../../src/core/request/tensor.ts';
import type { ScoreItem } from '../../../src/ports/accelerator.ts';
import { FLOAT, INT64, initializer, intAttribute, model, node, valueInfo } from './onnx-bytes.ts';

export const SEGMENT_WEIGHTS = [0.5, -1, 2, 0.25];

export interface ToyRequest {
  user: number[];
  segment: number;
  /** Rows of 2. */
  history: number[][];
  /** Rows of 3. */
  items: number[][];
}

export const SEGMENT_WEIGHT_BYTES = Buffer.from(Float32Array.from(SEGMENT_WEIGHTS).buffer);

/** @param weights the initializer of that name */
export function toyGraph(
  weights = initializer('weights', FLOAT, [SEGMENT_WEIGHTS.length], SEGMENT_WEIGHT_BYTES),
): Buffer {
  const axes = (...values: number[]): Buffer => Buffer.from(BigInt64Array.from(values, BigInt).buffer);
  const noKeepDims = intAttribute('keepdims', 0);
  return model(
    node('Gather', ['user', 'request_index'], 'userRows'),
    node('Mul', ['userRows', 'item'], 'products'),
    node('ReduceSum', ['products', 'lastAxis'], 'match', noKeepDims),
    node('Gather', ['weights', 'segment'], 'segmentWeight'),
    node('ReduceSum', ['history', 'historyAxes'], 'historySum', noKeepDims),
    node('Cast', ['history_length'], 'length', intAttribute('to', FLOAT)),
    node('Add', ['segmentWeight', 'historySum'], 'partial'),
    node('Add', ['partial', 'length'], 'requestSide'),
    node('Gather', ['requestSide', 'request_index'], 'requestRows'),
    node('Add', ['match', 'requestRows'], 'click'),
    weights,
    initializer('lastAxis', INT64, [1], axes(1)),
    initializer('historyAxes', INT64, [2], axes(1, 2)),
    valueInfo(11, 'user', FLOAT, ['B', 3]),
    valueInfo(11, 'segment', INT64, ['B']),
    valueInfo(11, 'history', FLOAT, ['B', 'T', 2]),
    valueInfo(11, 'history_length', INT64, ['B']),
    valueInfo(11, 'item', FLOAT, ['N', 3]),
    valueInfo(11, 'request_index', INT64, ['N']),
    valueInfo(12, 'click', FLOAT, ['N']),
    valueInfo(12, 'match', FLOAT, ['N']),
  );
}

export const TOY_LIMITS = { candidatesMax: 64, sequenceLengthMax: 8, tensorBytesMax: 4096 };

/** config.yaml as an object; JSON is YAML. */
export function toyConfig(graph: Uint8Array = toyGraph()) {
  const digest = `sha256:${createHash('sha256').update(graph).digest('hex')}`;
  const head = {
    datatype: 'FP32',
    axes: ['candidate'],
    shape: [-1],
    probability: false,
    meaning: 'of a test',
  };
  return {
    format: 1,
    family: 'toy',
    version: 1,
    variant: 'baseline',
    synthetic: true,
    description: 'a model of the tests',
    model: { file: 'model.onnx', digest, opset: 17 },
    inputs: [
      { name: 'user', side: 'request', datatype: 'FP32', shape: [-1, 3], axes: ['request', 'feature'] },
      { name: 'segment', side: 'request', datatype: 'INT64', shape: [-1], axes: ['request'] },
      {
        name: 'history',
        side: 'request',
        datatype: 'FP32',
        shape: [-1, -1, 2],
        axes: ['request', 'sequence', 'feature'],
        optional: true,
      },
      {
        name: 'history_length',
        side: 'request',
        datatype: 'INT64',
        shape: [-1],
        axes: ['request'],
        lengthOf: 'history',
      },
      { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, 3], axes: ['candidate', 'feature'] },
      { name: 'request_index', side: 'index', datatype: 'INT64', shape: [-1], axes: ['candidate'] },
    ] as Record<string, unknown>[],
    heads: [
      { name: 'click', ...head },
      { name: 'match', ...head },
    ] as Record<string, unknown>[],
    hints: [{ name: 'weight', default: 2 }],
    rankBy: 'click + weight * match',
    slaMs: 50,
    calibrationTarget: 'toy',
    limits: { ...TOY_LIMITS },
    golden: 'golden.json',
    cost: 'cost.json',
  };
}

export type ToyConfig = ReturnType<typeof toyConfig>;

export function toyCost() {
  return {
    format: 1,
    family: 'toy',
    version: 1,
    unit: 'ms',
    features: ['1', 'N', 'T', 'N*T'],
    coefficients: [0.1, 0.01, 0.001, 0.0001],
    medianRelativeError: 0.05,
    p95RelativeError: 0.2,
    grid: { B: 1, N: [1, 8], T: [0, 8, 4] },
    machine: 'none',
  };
}

/** What the graph and rankBy (with its default hint) must give for one request. */
export function toyScores({ user, segment, history, items }: ToyRequest, weight = 2) {
  const requestSide = (SEGMENT_WEIGHTS[segment] ?? Number.NaN) + sum(history.flat()) + history.length;
  const match = items.map((item) => sum(item.map((value, i) => value * (user[i] ?? 0))));
  const click = match.map((value) => value + requestSide);
  return { click, match, scores: click.map((value, i) => value + weight * (match[i] ?? 0)) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function floatTensor(name: string, shape: number[], values: readonly number[]): Tensor {
  return { name, datatype: 'FP32', shape, contents: Buffer.from(Float32Array.from(values).buffer) };
}

export function longTensor(name: string, shape: number[], values: readonly number[]): Tensor {
  return { name, datatype: 'INT64', shape, contents: Buffer.from(BigInt64Array.from(values, BigInt).buffer) };
}

export function toyItem(request: ToyRequest, scoreLimit = request.items.length): ScoreItem {
  return {
    requestTensors: [
      floatTensor('user', [3], request.user),
      longTensor('segment', [], [request.segment]),
      floatTensor('history', [request.history.length, 2], request.history.flat()),
    ],
    candidateTensors: [floatTensor('item', [request.items.length, 3], request.items.flat())],
    hints: {},
    scoreLimit,
  };
}

/** A request with small, distinct numbers that FP32 holds exactly. */
export function toyRequest(seed: number, candidates: number, rows: number): ToyRequest {
  const value = (i: number): number => ((seed * 31 + i * 7) % 17) / 8 - 1;
  return {
    user: [value(0), value(1), value(2)],
    segment: seed % SEGMENT_WEIGHTS.length,
    history: Array.from({ length: rows }, (_, row) => [value(row + 3), value(row + 4)]),
    items: Array.from({ length: candidates }, (_, i) => [value(i + 5), value(i + 6), value(i + 7)]),
  };
}

/** One case of two requests with their candidates interleaved. */
export function toyGolden() {
  const [first, second] = [toyRequest(1, 2, 1), toyRequest(2, 1, 2)];
  const [one, two] = [toyScores(first), toyScores(second)];
  const mix = (a: readonly number[], b: readonly number[]): number[] =>
    [a[0], b[0], a[1]].map((value) => value ?? 0);
  const tensor = ({ datatype, shape, contents }: Tensor) => ({
    datatype,
    shape,
    base64: contents.toString('base64'),
  });
  const floats = (shape: number[], values: readonly number[]) => tensor(floatTensor('', shape, values));
  const longs = (values: readonly number[]) => tensor(longTensor('', [values.length], values));
  return {
    format: 1,
    family: 'toy',
    version: 1,
    synthetic: true,
    tolerance: { relative: 1e-5, absolute: 1e-6 },
    cases: [
      {
        name: 'interleaved',
        inputs: {
          user: floats([2, 3], [...first.user, ...second.user]),
          segment: longs([first.segment, second.segment]),
          history: floats([2, 2, 2], [...first.history.flat(), 0, 0, ...second.history.flat()]),
          history_length: longs([1, 2]),
          item: floats(
            [3, 3],
            [first.items[0], second.items[0], first.items[1]].flatMap((row) => row ?? []),
          ),
          request_index: longs([0, 1, 0]),
        },
        outputs: {
          click: floats([3], mix(one.click, two.click)),
          match: floats([3], mix(one.match, two.match)),
        },
        scores: floats([3], mix(one.scores, two.scores)),
      },
    ],
  };
}

export interface ToyFiles {
  graph: Uint8Array;
  config: ToyConfig;
  golden: ReturnType<typeof toyGolden>;
  cost: ReturnType<typeof toyCost>;
}

/** The files of version 1; with `version` (and variant), all of them name that one. */
export function toyFiles(version = 1, variant: 'baseline' | 'enhanced' = 'baseline'): ToyFiles {
  return {
    graph: toyGraph(),
    config: { ...toyConfig(), version, variant },
    golden: { ...toyGolden(), version },
    cost: { ...toyCost(), version },
  };
}

/** Writes one version's folder under `root`. */
export async function writeVersion(
  root: string,
  files: ToyFiles,
  folder = `toy/${files.config.version}`,
): Promise<void> {
  const path = join(root, folder);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'model.onnx'), files.graph);
  await writeFile(join(path, 'config.yaml'), JSON.stringify(files.config));
  await writeFile(join(path, 'golden.json'), JSON.stringify(files.golden));
  await writeFile(join(path, 'cost.json'), JSON.stringify(files.cost));
}
