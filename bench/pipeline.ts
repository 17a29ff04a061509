import { silentTelemetry } from '../src/adapters/memory/telemetry.ts';
import { loadSettings } from '../src/config/load-settings.ts';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { kafkaTransport } from '../src/wiring/runtime.ts';
import { type Compared, compare, medianOf, ratio } from './pipeline/compare.ts';
import { modelAlonePerSecond } from './pipeline/model-alone.ts';
import { type Effort, readEffort } from './pipeline/options.ts';
import { encodedRequests } from './pipeline/requests.ts';
import { newEnvironment, type RunResult, type Variant } from './pipeline/run-once.ts';
import { median } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

const SMALL_BYTES = 2_048;
const LARGE_BYTES = 32_768;
/** Of a result at these sizes: what a relay sends on its last hop that moves as many bytes as the pipeline. */
const RESULT_BYTES = new Map([
  [SMALL_BYTES, 522],
  [LARGE_BYTES, 5_050],
]);
/** Requests in flight, enough to saturate two cores: with fewer, both wait for the broker more than they work. */
const WINDOWS = new Map([
  [SMALL_BYTES, 2_048],
  [LARGE_BYTES, 512],
]);
/** 40 000 requests of 2 KB, 10 000 of 32 KB: fewer, and much of what runs is not compiled yet. */
const WARM_UP_BYTES = 80 * 2 ** 20;
const RATIO_MIN = 0.8;

type Of = (result: RunResult) => number;
const perSecond: Of = (result) => result.perSecond;
const inverseCpu: Of = (result) => 1 / (result.cpuUs + result.brokerCpuUs);

const RELAY = { kind: 'relay', layout: 'one-process', patched: true } as const satisfies Variant;
const PIPELINE = { kind: 'pipeline', layout: 'one-process' } as const satisfies Variant;

/**
 * All stages of the pipeline on real Kafka beside a bare relay over the same hops: requests/s of a closed loop with a bounded window, and the
 * time from send to answer in it. Relay and pipeline take turns; figures are medians over the rounds, ratios medians of each round's. In every run
 * all requests are counted from outside: one that is not answered, or not scored, ends the benchmark.
 *
 *   npm run bench -- pipeline --rounds 5 --seconds 8 --warm-up 10 --only small,large,small-each,large-each,model,client,streams,large-streams
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const effort = readEffort(options, { rounds: 5, seconds: 8, warmUp: 10 });
  const stack = await startStack();
  const parts = new Map<string, () => Promise<BenchRow[]>>([
    ['small', () => oneProcess(stack, SMALL_BYTES, effort)],
    ['large', () => oneProcess(stack, LARGE_BYTES, effort)],
    ['small-each', () => processEach(stack, SMALL_BYTES, effort)],
    ['large-each', () => processEach(stack, LARGE_BYTES, effort)],
    ['model', () => withModel(stack, effort)],
    ['client', () => otherClient(stack, effort)],
    ['streams', () => besideStreams(stack, SMALL_BYTES, effort, 1)],
    ['large-streams', () => besideStreams(stack, LARGE_BYTES, effort)],
  ]);
  try {
    const rows: BenchRow[] = [];
    for (const [part, measure] of parts) {
      if (effort.only.length === 0 || effort.only.includes(part)) rows.push(...(await measure()));
    }
    return { rows };
  } finally {
    await stack.stop();
  }
}

/** All stages in one process beside a relay in one process: where it is the code that differs, and nothing else. */
async function oneProcess(stack: Stack, requestBytes: number, effort: Effort): Promise<BenchRow[]> {
  const size = `${requestBytes / 1_024} KB`;
  const resultBytes = RESULT_BYTES.get(requestBytes) ?? requestBytes;
  const compared = await compareClosed(stack, requestBytes, effort, {
    relay: RELAY,
    'pipeline, split': PIPELINE,
    'pipeline, fused': { ...PIPELINE, environment: { MILLRACE_TOPOLOGY: 'fused' } },
    'relay, results as small': { kind: 'relay', layout: 'one-process', patched: true, resultBytes },
    'relay, stock client': { kind: 'relay', layout: 'one-process', patched: false },
  });
  const relay = compared.relay;
  const split = compared['pipeline, split'];
  return [
    ...resultRows(size, compared),
    ratioRow(`requests/s, split / relay, ${size}`, split, relay, perSecond, RATIO_MIN),
    ratioRow(`requests/s, fused / relay, ${size}`, compared['pipeline, fused'], relay, perSecond, RATIO_MIN),
    ratioRow(
      `requests/s, split / relay with results as small, ${size}`,
      split,
      compared['relay, results as small'],
      perSecond,
    ),
    ratioRow(
      `requests/s, split / relay on the stock client, ${size}`,
      split,
      compared['relay, stock client'],
      perSecond,
    ),
    ratioRow(`requests per CPU second, broker's included, split / relay, ${size}`, split, relay, inverseCpu),
    ratioRow(
      `requests per CPU second, broker's included, fused / relay, ${size}`,
      compared['pipeline, fused'],
      relay,
      inverseCpu,
    ),
  ];
}

/** A process for each stage beside a process for each hop: where no single thread is the limit. */
async function processEach(stack: Stack, requestBytes: number, effort: Effort): Promise<BenchRow[]> {
  const size = `${requestBytes / 1_024} KB`;
  const compared = await compareClosed(stack, requestBytes, effort, {
    'relay, a process each': { kind: 'relay', layout: 'process-each', patched: true },
    'split, a process each': { kind: 'pipeline', layout: 'process-each' },
    'fused, a process each': {
      kind: 'pipeline',
      layout: 'process-each',
      environment: { MILLRACE_TOPOLOGY: 'fused' },
    },
  });
  const relay = compared['relay, a process each'];
  const ratioOf = (name: 'split' | 'fused') =>
    ratioRow(
      `requests/s, ${name} / relay, a process each, ${size}`,
      compared[`${name}, a process each`],
      relay,
      perSecond,
      RATIO_MIN,
    );
  return [...resultRows(size, compared), ratioOf('split'), ratioOf('fused')];
}

/** Relay and model share the cores: what the two take one after the other is what both together can be measured by. */
async function withModel(stack: Stack, effort: Effort): Promise<BenchRow[]> {
  const size = `${SMALL_BYTES / 1_024} KB`;
  const environment = { MILLRACE_WORKER_BACKEND: 'onnx-cpu' };
  const model = await measureModel({ ...newEnvironment(stack), ...environment }, effort);
  const compared = await compareClosed(stack, SMALL_BYTES, effort, {
    'relay beside the model': RELAY,
    'pipeline with the real model': { ...PIPELINE, environment },
  });
  const relay = compared['relay beside the model'];
  const ours = compared['pipeline with the real model'];
  const shares = ours.map((result, round) => {
    const floor = 1 / (1 / perSecond(relay[round] ?? result) + 1 / model);
    return perSecond(result) / floor;
  });
  return [
    ...resultRows(size, compared),
    { metric: `requests/s of the model alone, ${size}`, value: model, unit: '1/s', peer: 'onnxruntime-node' },
    {
      metric: `requests/s with the real model / (1 / (1/relay + 1/model)), ${size}`,
      value: median(shares),
      unit: '×',
      target: RATIO_MIN,
      relation: '>=',
    },
  ];
}

async function measureModel(environment: Record<string, string>, effort: Effort): Promise<number> {
  const client = await kafkaTransport(loadSettings(environment).settings, silentTelemetry()).open();
  const { requests } = encodedRequests(SMALL_BYTES, client.codecs.for('ScoreRequest'));
  await client.close();
  const measured: number[] = [];
  for (let round = 0; round < effort.rounds; round += 1)
    measured.push(await modelAlonePerSecond(environment, requests, effort.measureMs / 2));
  return median(measured);
}

async function otherClient(stack: Stack, effort: Effort): Promise<BenchRow[]> {
  const size = `${SMALL_BYTES / 1_024} KB`;
  const compared = await compareClosed(stack, SMALL_BYTES, effort, {
    'pipeline on kafkajs': PIPELINE,
    'pipeline on @platformatic/kafka': {
      ...PIPELINE,
      environment: { MILLRACE_KAFKA_CLIENT: 'platformatic' },
    },
  });
  return [
    ...resultRows(size, compared),
    ratioRow(
      `requests/s, split, @platformatic/kafka / kafkajs, ${size}`,
      compared['pipeline on @platformatic/kafka'],
      compared['pipeline on kafkajs'],
      perSecond,
    ),
  ];
}

/** A topology of the same shape in the stream processor that comes with Kafka, two threads in one JVM. */
async function besideStreams(
  stack: Stack,
  requestBytes: number,
  effort: Effort,
  least?: number,
): Promise<BenchRow[]> {
  const size = `${requestBytes / 1_024} KB`;
  const compared = await compareClosed(stack, requestBytes, effort, {
    'Kafka Streams': { kind: 'streams' },
    'pipeline beside Kafka Streams': { kind: 'pipeline', layout: 'process-each' },
  });
  const [streams, ours] = [compared['Kafka Streams'], compared['pipeline beside Kafka Streams']];
  return [
    ...resultRows(size, compared),
    ratioRow(`requests/s, split, a process each / Kafka Streams, ${size}`, ours, streams, perSecond, least),
  ];
}

function compareClosed<Name extends string>(
  stack: Stack,
  requestBytes: number,
  { rounds, warmUpMs, measureMs }: Effort,
  variants: Readonly<Record<Name, Variant>>,
): Promise<Compared<Name>> {
  const load = { kind: 'closed' as const, window: windowOf(requestBytes) };
  const warmUp = { ms: warmUpMs, requests: WARM_UP_BYTES / requestBytes };
  return compare(stack, variants, { requestBytes, load, warmUp, measureMs }, rounds);
}

function windowOf(requestBytes: number): number {
  return WINDOWS.get(requestBytes) ?? Math.max(...WINDOWS.values());
}

function resultRows(size: string, compared: Compared<string>): BenchRow[] {
  return Object.entries(compared).flatMap(([name, results]) => {
    const peer = peerOf(name);
    const row = (metric: string, of: Of, unit: string): BenchRow => ({
      metric: `${metric}, ${name}, ${size}`,
      value: medianOf(results, of),
      unit,
      ...peer,
    });
    return [
      row('requests/s', perSecond, '1/s'),
      row('p50 of the closed loop', ({ latencyMsP50 }) => latencyMsP50, 'ms'),
      row('p99 of the closed loop', ({ latencyMsP99 }) => latencyMsP99, 'ms'),
      row('CPU a request', ({ cpuUs }) => cpuUs, 'µs'),
      row('CPU of the broker a request', ({ brokerCpuUs }) => brokerCpuUs, 'µs'),
    ];
  });
}

function peerOf(name: string): { peer?: string } {
  if (name.startsWith('relay')) return { peer: 'bare kafkajs relay' };
  return name === 'Kafka Streams' ? { peer: 'Kafka Streams 4.4' } : {};
}

function ratioRow(
  metric: string,
  ours: readonly RunResult[],
  peers: readonly RunResult[],
  of: Of,
  least?: number,
): BenchRow {
  const value = ratio(ours, peers, of);
  return least === undefined
    ? { metric, value, unit: '×' }
    : { metric, value, unit: '×', target: least, relation: '>=' };
}
