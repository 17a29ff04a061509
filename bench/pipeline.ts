import { memorySchemaRegistry } from '../src/adapters/registry/memory.ts';
import { systemClock } from '../src/adapters/system/clock.ts';
import { createCodecs } from '../src/contracts/codec.ts';
import type { ScoreRequest } from '../src/contracts/records.ts';
import { recordTopics } from '../src/contracts/topic-specs.ts';
import { topicNames } from '../src/contracts/topics.ts';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { compare, medianOf, ratio } from './pipeline/compare.ts';
import { modelAlonePerSecond } from './pipeline/model-alone.ts';
import { type Effort, readEffort } from './pipeline/options.ts';
import { encodedRequests } from './pipeline/requests.ts';
import { newEnvironment, type RunResult, type Variant } from './pipeline/run-once.ts';
import type { BenchRow } from './run.ts';

const SIZES = [2_048, 32_768] as const;
const WINDOW = 512;
const RELAY = 'bare kafkajs relay';

const VARIANTS = {
  relay: { kind: 'relay', layout: 'one-process', patched: true },
  'stock relay': { kind: 'relay', layout: 'one-process', patched: false },
  pipeline: { kind: 'pipeline', layout: 'one-process' },
  fused: { kind: 'pipeline', layout: 'one-process', environment: { MILLRACE_TOPOLOGY: 'fused' } },
  platformatic: {
    kind: 'pipeline',
    layout: 'one-process',
    environment: { MILLRACE_KAFKA_CLIENT: 'platformatic' },
  },
  'real model': {
    kind: 'pipeline',
    layout: 'one-process',
    environment: { MILLRACE_WORKER_BACKEND: 'onnx-cpu' },
  },
} as const satisfies Record<string, Variant>;

const perSecond = (result: RunResult): number => result.perSecond;
const cpuUs = (result: RunResult): number => result.cpuUs;

/**
 * Requests per second through all stages on real Kafka with 512 in flight, beside a bare kafkajs relay over the same four topics: the same client,
 * patches and batches. Every run is checked by an outside reader: each request was scored once.
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const effort = readEffort(options, { rounds: 3, seconds: 8, warmUp: 4 });
  const stack = await startStack();
  try {
    const rows: BenchRow[] = [];
    for (const bytes of SIZES) rows.push(...(await rowsOf(stack, bytes, effort)));
    return { rows };
  } finally {
    await stack.stop();
  }
}

async function rowsOf(
  stack: Stack,
  bytes: number,
  { rounds, warmUpMs, measureMs }: Effort,
): Promise<BenchRow[]> {
  const size = `${bytes / 1_024} KB`;
  const load = { kind: 'closed' as const, window: WINDOW };
  const compared = await compare(stack, VARIANTS, { requestBytes: bytes, load, warmUpMs, measureMs }, rounds);
  const alone = await modelAlonePerSecond(
    newEnvironment(stack, VARIANTS['real model']),
    await requestsOf(bytes),
    measureMs,
  );
  const relayed = medianOf(compared.relay, perSecond);
  const shared = 1 / (1 / relayed + 1 / alone);
  return [
    ...Object.entries(compared).map(([name, results]) =>
      plain(`${name}, ${size}`, medianOf(results, perSecond), 'requests/s', name),
    ),
    ...Object.entries(compared).map(([name, results]) =>
      plain(`CPU of ${name}, ${size}`, medianOf(results, cpuUs), 'µs/request', name),
    ),
    ...Object.entries(compared).map(([name, results]) =>
      plain(
        `p50 of ${name} at saturation, ${size}`,
        medianOf(results, ({ latencyMsP50 }) => latencyMsP50),
        'ms',
        name,
      ),
    ),
    { metric: `model alone, ${size}`, value: alone, unit: 'requests/s' },
    atLeast(`pipeline / relay, ${size}`, ratio(compared.pipeline, compared.relay, perSecond)),
    { metric: `fused / relay, ${size}`, value: ratio(compared.fused, compared.relay, perSecond), unit: '×' },
    {
      metric: `platformatic / kafkajs, ${size}`,
      value: ratio(compared.platformatic, compared.pipeline, perSecond),
      unit: '×',
    },
    atLeast(
      `real model / (1 / (1/relay + 1/model)), ${size}`,
      medianOf(compared['real model'], perSecond) / shared,
    ),
  ];
}

function plain(metric: string, value: number, unit: string, name: string): BenchRow {
  return name.includes('relay') ? { metric, value, unit, peer: RELAY } : { metric, value, unit };
}

function atLeast(metric: string, value: number): BenchRow {
  return { metric, value, unit: '×', target: 0.8, relation: '>=' };
}

/** The bench's requests as the model gets them. */
async function requestsOf(bytes: number): Promise<readonly ScoreRequest[]> {
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock: systemClock() });
  await codecs.register(recordTopics({ topics: topicNames(), tenants: [], pools: [] }));
  return encodedRequests(bytes, codecs.for('ScoreRequest')).requests;
}
