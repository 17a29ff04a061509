import { fileURLToPath } from 'node:url';
import { memorySchemaRegistry } from '../src/adapters/memory/schema-registry.ts';
import { systemClock } from '../src/adapters/system/clock.ts';
import { type Codecs, createCodecs } from '../src/contracts/codec.ts';
import { carrying, schemaOf } from '../src/contracts/headers.ts';
import {
  makeDispatch,
  makePolicyDecision,
  makeRoutableRequest,
  makeScoredResult,
  makeScoreRequest,
  makeTimings,
  type Records,
  type RoutableRequest,
} from '../src/contracts/records.ts';
import { DISPATCH_TOPIC, TOPICS, topicNames } from '../src/contracts/topics.ts';
import type { BenchRow } from './run.ts';

/**
 * What reading and writing records costs: a stage that passes a request's bytes on, against one raw copy of those bytes; and each record
 * against JSON. `node bench/codec.ts` prints it.
 */

/** Bytes of the request that is passed on. */
const PAYLOADS = [2_048, 32_768];
const ROUNDS = 31;
const ROUND_MS = 20;
const PASS_TARGET = 2;

export async function run(): Promise<{ rows: BenchRow[] }> {
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock: systemClock() });
  const names = topicNames();
  await codecs.register([
    [names.fixed('ingress'), TOPICS.ingress],
    [names.fixed('features'), TOPICS.features],
    [names.dispatch('pool'), DISPATCH_TOPIC],
    [names.fixed('scored-results'), TOPICS['scored-results']],
  ]);
  return { rows: PAYLOADS.flatMap((bytes) => [...passRows(codecs, bytes), ...recordRows(codecs, bytes)]) };
}

/** Extractor and router: decode what came in, encode what goes out, the request's bytes inside. */
function passRows(codecs: Codecs, bytes: number): BenchRow[] {
  const { ScoreRequest, RoutableRequest } = recordsOf(codecs, bytes);
  const ingress = codecs.for('ScoreRequest');
  const features = codecs.for('RoutableRequest');
  const dispatches = codecs.for('Dispatch');
  const request = ingress.encode(ScoreRequest);
  const routable = features.encode(RoutableRequest);
  const times = measure({
    copy: () => request.copy(Buffer.allocUnsafe(request.length)),
    extractor: () => {
      const fingerprint = schemaOf(ingress.headers);
      const decoded = ingress.decode(request, fingerprint);
      if (decoded.status !== 'ok') return;
      const { requestId } = decoded.value;
      const payloadSchema = fingerprint ?? '';
      const value = makeRoutableRequest({ ...RoutableRequest, requestId, payloadSchema, payload: request });
      features.encode(value);
      carrying(features.headers, value);
    },
    router: () => {
      const decoded = features.decode(routable, schemaOf(features.headers));
      if (decoded.status !== 'ok') return;
      const dispatch = dispatchOf(decoded.value);
      dispatches.encode(dispatch);
      carrying(dispatches.headers, dispatch);
    },
    'extractor without headers': () => {
      const decoded = ingress.decode(request);
      if (decoded.status !== 'ok') return;
      const { requestId } = decoded.value;
      features.encode(makeRoutableRequest({ ...RoutableRequest, requestId, payload: request }));
    },
    'router without headers': () => {
      const decoded = features.decode(routable);
      if (decoded.status === 'ok') dispatches.encode(dispatchOf(decoded.value));
    },
  });
  const size = `${bytes / 1024} KB`;
  const isTarget = bytes === Math.max(...PAYLOADS);
  return [
    { metric: `raw copy of a request, ${size}`, value: round(times.copy), unit: 'ns' },
    ...(['extractor', 'router'] as const).flatMap((stage): BenchRow[] => [
      {
        metric: `${stage} passes a request on: decode and encode, ${size}`,
        value: round(times[stage]),
        unit: 'ns',
      },
      {
        metric: `${stage} against the raw copy, ${size}`,
        value: Math.round((times[stage] / times.copy) * 100) / 100,
        unit: '×',
        ...(isTarget ? { target: PASS_TARGET, relation: '<=' as const } : {}),
      },
      {
        metric: `${stage} against itself without the headers for schema and request, ${size}`,
        value: Math.round((times[stage] / times[`${stage} without headers`]) * 100) / 100,
        unit: '×',
      },
    ]),
  ];
}

function recordRows(codecs: Codecs, bytes: number): BenchRow[] {
  const records = recordsOf(codecs, bytes);
  return (Object.keys(records) as (keyof typeof records)[]).flatMap((name) => {
    const codec = codecs.for(name);
    const value = records[name] as never;
    const encoded = codec.encode(value);
    const json = toJson(value);
    const times = measure({
      encode: () => codec.encode(value),
      decode: () => codec.decode(encoded),
      toJson: () => toJson(value),
      fromJson: () => fromJson(json),
    });
    const size = `${bytes / 1024} KB`;
    return [
      { metric: `encode ${name}, ${size}`, value: round(times.encode), unit: 'ns' },
      { metric: `encode ${name}, ${size}`, value: round(times.toJson), unit: 'ns', peer: 'JSON with base64' },
      { metric: `decode ${name}, bounds checked, ${size}`, value: round(times.decode), unit: 'ns' },
      {
        metric: `decode ${name}, ${size}`,
        value: round(times.fromJson),
        unit: 'ns',
        peer: 'JSON with base64',
      },
    ];
  });
}

type Measured = Pick<Records, 'ScoreRequest' | 'RoutableRequest' | 'Dispatch' | 'ScoredResult'>;

/** A request for 64 candidates (2 KB) or 1 024 (32 KB) with 8 floats each, and what it becomes on its way. */
function recordsOf(codecs: Codecs, bytes: number): Measured {
  const width = 8;
  const candidates = Math.floor((bytes * 0.95) / (width * 4));
  const tensor = (name: string, shape: number[]) => ({
    name,
    datatype: 'FP32',
    shape,
    contents: Buffer.alloc(
      shape.reduce((product, size) => product * size, 4),
      1,
    ),
  });
  const ScoreRequest = makeScoreRequest({
    requestId: '01890a5d-ac96-774b-bcce-b302099a8057',
    model: 'feed-ranker',
    deadlineMs: 100,
    bucketKey: 'user-1234567',
    baselineCandidates: Math.floor(candidates / 2),
    requestTensors: [tensor('user', [1, 16])],
    candidateTensors: [tensor('item', [candidates, width])],
    hints: { value: 0.4, pageDepth: 3 },
    context: { surface: 'home', device: 'phone' },
  });
  const identity = { topic: 'millrace.ingress.v1', partition: 17, offset: 123_456_789 };
  const RoutableRequest = makeRoutableRequest({
    requestId: ScoreRequest.requestId,
    identity,
    model: ScoreRequest.model,
    signals: {
      sparsityRatio: 0.7,
      embeddingNorm: 3.1,
      predictedCostMs: 2.2,
      sequenceLength: 128,
      value: 0.4,
      activationBytes: 65_536,
    },
    budgetMs: 100,
    budgetRemainingMs: 93.5,
    inTopicMs: 6.1,
    bucketKey: 'user-1234567',
    candidateCount: candidates,
    baselineCandidates: ScoreRequest.baselineCandidates,
    context: ScoreRequest.context,
    payloadSchema: schemaOf(codecs.for('ScoreRequest').headers),
    payload: codecs.for('ScoreRequest').encode(ScoreRequest),
  });
  const scores = Buffer.alloc(candidates * 4, 1);
  const ScoredResult = makeScoredResult({
    requestId: ScoreRequest.requestId,
    identity,
    outcome: 'SCORED',
    model: 'feed-ranker',
    modelVersion: '3',
    outputs: [tensor('click', [candidates]), tensor('like', [candidates])],
    scores,
    candidatesScored: candidates,
    baselineCandidates: ScoreRequest.baselineCandidates,
    timings: makeTimings({ inTopicMs: 12.5, queueMs: 1.25, computeMs: 4.5, totalMs: 20, budgetMs: 100 }),
  });
  return { ScoreRequest, RoutableRequest, Dispatch: dispatchOf(RoutableRequest), ScoredResult };
}

const POLICY = makePolicyDecision({
  digest: `sha256:${'ab'.repeat(32)}`,
  name: 'feed-router',
  version: 42,
  epoch: 12,
  leaf: 'sparse',
  arm: 'STABLE',
});

function dispatchOf(request: RoutableRequest) {
  return makeDispatch({
    requestId: request.requestId,
    identity: request.identity,
    accelerator: 'gpu-a100',
    pool: 'a100-eu',
    kernel: 'sparse',
    memory: 'l2',
    model: request.model,
    scoreLimit: request.candidateCount,
    baselineCandidates: request.baselineCandidates,
    policy: POLICY,
    budgetMs: request.budgetMs,
    budgetRemainingMs: request.budgetRemainingMs,
    inTopicMs: request.inTopicMs,
    router: 'router-1',
    sequence: 1_000_000,
    payloadSchema: request.payloadSchema,
    payload: request.payload,
  });
}

/** The fairest JSON: bytes as base64, converted without JSON's own detour over arrays of numbers. */
function toJson(value: unknown): string {
  return JSON.stringify(withBase64(value));
}

function withBase64(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.map(withBase64);
  if (typeof value !== 'object' || value === null) return value;
  const converted: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) converted[name] = withBase64(part);
  return converted;
}

const BYTES_FIELDS: ReadonlySet<string> = new Set(['contents', 'payload', 'scores']);

function fromJson(text: string): unknown {
  return JSON.parse(text, (name, part: unknown) =>
    BYTES_FIELDS.has(name) && typeof part === 'string' ? Buffer.from(part, 'base64') : part,
  );
}

/**
 * Nanoseconds of CPU a call, the collector's threads included, median over rounds. Each round runs every variant in turn, so that what
 * disturbs the machine meets all of them; CPU time leaves out what others on it take.
 */
function measure<K extends string>(variants: Record<K, () => unknown>): Record<K, number> {
  const names = Object.keys(variants) as K[];
  const calls = new Map(names.map((name) => [name, calibrate(variants[name])]));
  const samples = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) samples.get(name)?.push(cpuNs(variants[name], calls.get(name) ?? 1));
  }
  return Object.fromEntries(names.map((name) => [name, median(samples.get(name) ?? [])])) as Record<
    K,
    number
  >;
}

/** How many calls fill a round; it warms them up as well. */
function calibrate(call: () => unknown): number {
  for (let calls = 256; ; calls *= 2) {
    if ((cpuNs(call, calls) * calls) / 1e6 >= ROUND_MS) return calls;
  }
}

function cpuNs(call: () => unknown, calls: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < calls; i++) call();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / calls;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function round(nanoseconds: number): number {
  return Math.round(nanoseconds);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { metric, value, unit, target, relation, peer } of (await run()).rows) {
    const aim = target === undefined ? '' : ` (target ${relation} ${target})`;
    console.log(`${metric}${peer === undefined ? '' : ` [${peer}]`}: ${value} ${unit}${aim}`);
  }
}
