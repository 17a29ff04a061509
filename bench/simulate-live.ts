import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Connection } from '../src/client/connection.ts';
import { loadSettings } from '../src/config/load-settings.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { openRepository } from '../src/inference/repository/open-repository.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { parseSimulatedFleet } from '../src/simulation/fleet/parse-simulated-fleet.ts';
import { simulatePipeline } from '../src/simulation/pipeline/simulate-pipeline.ts';
import { readCatalogue } from '../src/traffic/catalogue.ts';
import { drive } from '../src/traffic/drive.ts';
import { openOutsideLedger } from '../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../src/traffic/request-maker.ts';
import { openSender } from '../src/traffic/send-requests.ts';
import { madeUpTraffic } from '../src/traffic/traffic-plan.ts';
import { compileChecked, digestOf } from '../src/wiring/policy-files.ts';
import { DEFAULT_PROCESSES, startRealPipeline } from '../test/slow/real-pipeline.ts';
import { median, percentile } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

/**
 * The same scenario on the local stack, a process for each service, and by `millrace simulate`: two workers of the simulated backend, slowed down so that service
 * and queues are what a request waits for, and the same arrivals and sizes. The simulation is told one thing of the machine: how long a record takes to the broker and from it,
 * which is measured beside the pipeline before it is used.
 *
 *   npm run bench -- simulate-live --rate 36 --seconds 120 --slowdown 20 --seed 1
 */

const USAGE = {
  rate: { type: 'string', default: '36' },
  seconds: { type: 'string', default: '120' },
  slowdown: { type: 'string', default: '20' },
  seed: { type: 'string', default: '1' },
} as const;
const APART_MAX = 0.15;
const HOPS = 200;
const HOP_EVERY_MS = 50;
/** Nothing of these requests is counted: what is compiled, and how fast the workers are, is learned by them. */
const WARM_UP_SECONDS = 15;
const BUDGET_MS = 10_000;
const POLICY = 'examples/policies/one-pool.yaml';

interface Scenario {
  rate: number;
  seconds: number;
  slowdown: number;
  seed: number;
}

interface Latency {
  p50Ms: number;
  p99Ms: number;
}

export async function run(args: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const scenario = {
    rate: Number(values.rate),
    seconds: Number(values.seconds),
    slowdown: Number(values.slowdown),
    seed: Number(values.seed),
  };
  const { live, hopMs } = await measureLive(scenario);
  const simulated = await simulate(scenario, hopMs);
  const rows: BenchRow[] = [{ metric: 'a hop, to the broker or from it', value: hopMs, unit: 'ms' }];
  for (const [name, key] of [
    ['p50', 'p50Ms'],
    ['p99', 'p99Ms'],
  ] as const) {
    rows.push({ metric: `${name}, local stack`, value: live[key], unit: 'ms' });
    rows.push({ metric: `${name}, simulated`, value: simulated[key], unit: 'ms' });
    rows.push({
      metric: `${name}, simulated and live apart`,
      value: Math.abs(simulated[key] / live[key] - 1),
      unit: 'of live',
      target: APART_MAX,
      relation: '<=',
    });
  }
  return { rows };
}

function planOf({ rate }: Scenario) {
  return madeUpTraffic({
    perSecond: rate,
    ...{ bursts: undefined, wave: undefined },
    ...{ candidatesMin: 8, candidatesMax: 64, historyRowsMax: 16 },
  });
}

async function measureLive(scenario: Scenario): Promise<{ live: Latency; hopMs: number }> {
  const stack = await startStack();
  const pipeline = await startRealPipeline(stack.environment, {
    environment: { MILLRACE_SLOTS_PER_POOL: '2' },
    processes: DEFAULT_PROCESSES.map((process) =>
      process.service === 'accelerator-worker'
        ? {
            ...process,
            environment: {
              ...process.environment,
              MILLRACE_WORKER_SLOTS: process.name === 'worker-1' ? '0' : '1',
              MILLRACE_WORKER_BACKEND: 'simulated',
              MILLRACE_WORKER_SIMULATED_SLOWDOWN: String(scenario.slowdown),
            },
          }
        : process,
    ),
  });
  try {
    const { client } = pipeline;
    await load(client, { ...scenario, seconds: WARM_UP_SECONDS, seed: scenario.seed + 1_000 }, 'warm');
    const hopMs = await hopOf(client);
    const latencies = await load(client, scenario, 'live');
    return { live: { p50Ms: percentile(latencies, 0.5), p99Ms: percentile(latencies, 0.99) }, hopMs };
  } finally {
    await pipeline.close();
    await stack.stop();
  }
}

/** Of each request from when it was sent to when an outside reader has its result, ms. */
async function load(client: Connection, scenario: Scenario, prefix: string): Promise<number[]> {
  const sentMs = new Map<string, number>();
  const latencies: number[] = [];
  const ledger = await openOutsideLedger(client, {
    onResult: ({ requestId }) => {
      const startedMs = sentMs.get(requestId);
      if (startedMs !== undefined && sentMs.delete(requestId)) latencies.push(performance.now() - startedMs);
    },
  });
  const random = seededRandom(scenario.seed);
  const send = await openSender(client);
  const { sent } = await drive({
    arrivals: planOf(scenario).arrivals(random),
    maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
      deadlineMs: BUDGET_MS,
    }),
    clock: client.clock,
    idPrefix: `${prefix}-`,
    send: (request) => {
      sentMs.set(request.requestId, performance.now());
      return send(request);
    },
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: scenario.seconds * 1_000,
  });
  await ledger.drained(60_000, sent);
  const { outcomes } = ledger.summary();
  await ledger.close();
  if (outcomes.scored < sent) throw new Error(`${sent - outcomes.scored} of ${sent} were not scored`);
  return latencies;
}

/** Half of what a record takes from its sender to a reader, with nothing else under way. */
async function hopOf(client: Connection): Promise<number> {
  const topic = client.topics.fixed('outcomes');
  const sentMs: number[] = [];
  const tookMs: number[] = [];
  const reader = await client.bus.read({ topics: [topic], startAt: 'latest' }, (records) => {
    for (const _ of records) tookMs.push(performance.now() - (sentMs[tookMs.length] ?? Number.NaN));
  });
  for (let n = 0; n < HOPS; n += 1) {
    sentMs.push(performance.now());
    await client.bus.produce({ topic, partition: 0, key: null, value: Buffer.alloc(2_000) });
    await new Promise((resolve) => setTimeout(resolve, HOP_EVERY_MS));
  }
  await reader.close();
  return median(tookMs) / 2;
}

async function simulate(scenario: Scenario, hopMs: number): Promise<Latency> {
  const fleet = parseSimulatedFleet(`
apiVersion: millrace/v1
kind: SimulatedFleet
name: two-workers
hopMs: ${hopMs}
accelerators:
  cpu:
    kernels: [dense]
    memories: [host]
    pools: [{pool: cpu, capacityClass: dedicated, slots: 2, speed: ${1 / scenario.slowdown}}]
`);
  const bytes = readFileSync(POLICY);
  const compiled = compileChecked(bytes, fleet.fleet);
  const { name, version } = compiled.document;
  const random = seededRandom(scenario.seed);
  const plan = planOf(scenario);
  const { latency } = await simulatePipeline({
    fleet,
    policy: { ref: { digest: digestOf(bytes), name, version }, epoch: 0, compiled, source: 'built-in' },
    settings: loadSettings({}).settings,
    repository: await openRepository('models/repository'),
    random,
    digest: digestOf,
    checkPolicy: (text) => compileChecked(text, fleet.fleet).document,
    traffic: {
      description: plan.description,
      arrivals: plan.arrivals(random),
      maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
        deadlineMs: BUDGET_MS,
      }),
    },
    durationMs: scenario.seconds * 1_000,
    drainMs: 60_000,
  });
  return { p50Ms: latency.p50Ms ?? Number.NaN, p99Ms: latency.p99Ms ?? Number.NaN };
}
