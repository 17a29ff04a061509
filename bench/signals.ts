import { checkRequest } from '../src/core/request/check.ts';
import type { FamilyContract } from '../src/core/request/family.ts';
import type { RequestFields } from '../src/core/request/fields.ts';
import { firstNonFinite } from '../src/core/request/finite.ts';
import { DEFAULT_REQUEST_LIMITS } from '../src/core/request/limits.ts';
import type { Tensor } from '../src/core/request/tensor.ts';
import { parseCostModel } from '../src/core/signals/cost-model.ts';
import { createSignalExtractor, SIGNALS } from '../src/core/signals/extract.ts';
import { createViewReader } from '../src/core/signals/view-reader.ts';

/** One figure; a target is held where `value relation target` is true. */
export interface BenchRow {
  metric: string;
  value: number;
  unit: string;
  target?: number;
  relation?: '<=' | '>=';
}

const BATCHES = 1_000;
/** Shorter than a time slice, so that most batches run undisturbed on a busy machine. */
const BATCH_MS = 0.1;
const WARM_UP_CALLS = 5_000;
/** Few enough that most rounds see no garbage collection. */
const ALLOCATION_CALLS = 100;
const ALLOCATION_ROUNDS = 500;

const FAMILY: FamilyContract = {
  family: 'ranker',
  slaMs: 100,
  versions: [{ version: '1', variant: 'baseline' }],
  candidatesMax: 2048,
  sequenceLengthMax: 64,
  tensorBytesMax: 1 << 20,
  inputs: [
    { name: 'user', side: 'request', datatype: 'FP32', shape: [64], required: true },
    { name: 'history', side: 'request', datatype: 'FP32', shape: [-1, 32], required: false },
    {
      name: 'history_length',
      side: 'request-length',
      datatype: 'INT64',
      shape: [],
      required: false,
      lengthOf: 'history',
    },
    { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, 32], required: true },
    { name: 'request_index', side: 'request-index', datatype: 'INT64', shape: [-1], required: false },
  ],
};
const FAMILIES = new Map([[FAMILY.family, FAMILY]]);
const COST_MODEL = parseCostModel({
  format: 1,
  unit: 'ms',
  features: ['1', 'N', 'T', 'N*T'],
  coefficients: [0.06, 0.0002, 0.0001, 0.000001],
});

/** A tensor whose contents start at an odd address, as a decoder hands them out. About a third of the values are 0. */
function unalignedTensor(name: string, shape: number[]): Tensor {
  const values = shape.reduce((product, size) => product * size, 1);
  const contents = Buffer.alloc(4 * values + 1).subarray(1);
  for (let i = 0; i < values; i++) contents.writeFloatLE(i % 3 === 0 ? 0 : Math.sin(i), 4 * i);
  return { name, datatype: 'FP32', shape, contents };
}

/** Request side of 64 + 30 · 32 = 1 024 floats, candidate side of 256 × 32. */
function makeRequest(): RequestFields {
  const ids = Buffer.alloc(8 * 256);
  for (let i = 0; i < 256; i++) ids.writeBigInt64LE(BigInt(i), 8 * i);
  return {
    requestId: '0b54d1a4-6f0c-4c5e-9d0e-2f1a6f3f9d11',
    model: 'ranker',
    deadlineMs: 80,
    priority: 5,
    value: 1.5,
    candidateValues: null,
    bucketKey: 'user-4711',
    region: 'eu',
    baselineCandidates: 128,
    candidateIds: { name: 'ids', datatype: 'INT64', shape: [256], contents: ids },
    requestTensors: [unalignedTensor('user', [64]), unalignedTensor('history', [30, 32])],
    candidateTensors: [unalignedTensor('item', [256, 32])],
    hints: { conversionWeight: 1 },
    context: { surface: 'feed' },
    experiments: {},
    optOut: [],
    pin: null,
    resultPartition: null,
  };
}

/** Median over the batches of what one call takes, microseconds: other work on the machine hits some batches, not the median. */
function medianUs(call: () => number): number {
  let sink = 0;
  const started = performance.now();
  for (let i = 0; i < WARM_UP_CALLS; i++) sink += call();
  const calls = Math.max(1, Math.round((BATCH_MS * WARM_UP_CALLS) / (performance.now() - started)));
  const perCallUs = Array.from({ length: BATCHES }, () => {
    const batchStarted = performance.now();
    for (let i = 0; i < calls; i++) sink += call();
    return ((performance.now() - batchStarted) * 1_000) / calls;
  });
  keep(sink);
  return median(perCallUs);
}

/** Median growth of the heap per call, bytes, over rounds in which it did grow: the others saw a garbage collection. */
function allocatedBytes(call: () => number): number {
  let sink = 0;
  const perCall: number[] = [];
  for (let round = 0; round < ALLOCATION_ROUNDS; round++) {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < ALLOCATION_CALLS; i++) sink += call();
    const grown = process.memoryUsage().heapUsed - before;
    if (grown > 0) perCall.push(grown / ALLOCATION_CALLS);
  }
  keep(sink);
  return median(perCall);
}

/** Uses a result, so that the compiler cannot leave out what made it. */
function keep(sink: number): void {
  if (sink === Number.MIN_VALUE) throw new Error('unreachable');
}

function median(samples: number[]): number {
  return samples.sort((a, b) => a - b)[samples.length >> 1] ?? Number.NaN;
}

/** Cost of a request at the extractor without its codecs: check, view, every signal by itself, and all of it together. */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const request = makeRequest();
  const check = () => checkRequest(request, FAMILIES, DEFAULT_REQUEST_LIMITS);
  const accepted = check();
  if (accepted.status === 'rejected') throw new Error(accepted.message);
  const reader = createViewReader();
  const view = reader.read(accepted, COST_MODEL);
  const extractor = createSignalExtractor(new Map([['ranker', COST_MODEL]]));
  const out = new Float64Array(SIGNALS.length);
  const whole = () => {
    const checked = check();
    if (checked.status === 'accepted') extractor.extractInto(checked, out);
    return out[0] ?? 0;
  };
  const contents = request.requestTensors.map((tensor) => tensor.contents);

  const rows: BenchRow[] = [
    { metric: 'extraction, whole', value: medianUs(whole), unit: 'us', target: 20, relation: '<=' },
    { metric: 'allocation', value: allocatedBytes(whole), unit: 'B/request' },
    { metric: 'check of the request', value: medianUs(() => check().status.length), unit: 'us' },
    {
      metric: 'of it, finite check of 1024 floats',
      value: medianUs(() => contents.reduce((sum, bytes) => sum + firstNonFinite(bytes, 'FP32'), 0)),
      unit: 'us',
    },
    { metric: 'view', value: medianUs(() => reader.read(accepted, COST_MODEL).candidateCount), unit: 'us' },
  ];
  for (const { name, read, costBudgetUs } of SIGNALS)
    rows.push({
      metric: name,
      value: medianUs(() => read(view)),
      unit: 'us',
      target: costBudgetUs,
      relation: '<=',
    });
  return { rows };
}

if (import.meta.main) console.table((await run()).rows);
