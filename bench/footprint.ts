import { setTimeout as pause } from 'node:timers/promises';
import { silentTelemetry } from '../src/adapters/memory/telemetry.ts';
import type { ServiceName, ServiceProcess } from '../src/cli/service-processes.ts';
import { startServiceProcess } from '../src/cli/service-processes.ts';
import type { Connection } from '../src/client/connection.ts';
import { loadSettings } from '../src/config/load-settings.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { applyTopics } from '../src/wiring/apply-topics.ts';
import { kafkaTransport } from '../src/wiring/runtime.ts';
import { Load } from './pipeline/load.ts';
import { privateMb, residentMb } from './pipeline/machine.ts';
import { readEffort } from './pipeline/options.ts';
import { encodedRequests } from './pipeline/requests.ts';
import { newEnvironment } from './pipeline/run-once.ts';
import { median } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

const PER_SECOND = 200;
const REQUEST_BYTES = 2_048;
const IDLE_MS = 5_000;
const SAMPLE_MS = 500;
const ROUTER_MB_MAX = 120;
const READY_S_MAX = 3;
const SERVICES: readonly ServiceName[] = [
  'policy-controller',
  'accelerator-worker',
  'request-router',
  'feature-extractor',
];

interface Started {
  service: ServiceName;
  running: ServiceProcess;
  readyS: number;
}

/**
 * Resident memory of each service as a process of its own, idle and at 200 requests/s scored by the real model, and how long each takes from its start
 * until it is ready, Kafka, registry and Redis being up. One after the other: they do not take each other's cores while they start.
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { rounds, warmUpMs, measureMs } = readEffort(options, { rounds: 3, seconds: 20, warmUp: 20 });
  const stack = await startStack();
  try {
    const environment = { ...newEnvironment(stack), MILLRACE_WORKER_BACKEND: 'onnx-cpu' };
    const { settings } = loadSettings(environment);
    const client = await kafkaTransport(settings, silentTelemetry()).open();
    await applyTopics(settings, client.bus);
    const readyS = new Map<ServiceName, number[]>(SERVICES.map((service) => [service, []]));
    let started: Started[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await stopAll(started);
      started = await startAll(environment);
      for (const { service, readyS: seconds } of started) readyS.get(service)?.push(seconds);
    }
    await pause(IDLE_MS);
    const idle = sample(started);
    const loaded = await sampleUnderLoad(client, started, warmUpMs, measureMs);
    const own: Megabytes = new Map(started.map(({ service, running }) => [service, privateMb(running.pid)]));
    await stopAll(started);
    await client.close();
    return {
      rows: SERVICES.flatMap((service) => rowsOf(service, readyS.get(service) ?? [], { idle, loaded, own })),
    };
  } finally {
    await stack.stop();
  }
}

async function startAll(environment: Readonly<Record<string, string>>): Promise<Started[]> {
  const started: Started[] = [];
  for (const service of SERVICES) {
    const startedMs = performance.now();
    const running = await startServiceProcess({
      service,
      name: service,
      environment,
      logFolder: `/tmp/millrace-footprint-${process.pid}`,
      tell: console.error,
    });
    started.push({ service, running, readyS: (performance.now() - startedMs) / 1_000 });
  }
  return started;
}

async function stopAll(started: readonly Started[]): Promise<void> {
  for (const { running } of started) running.kill('SIGTERM');
  await Promise.all(started.map(({ running }) => running.ended));
}

type Megabytes = ReadonlyMap<ServiceName, number>;

function sample(started: readonly Started[]): Megabytes {
  return new Map(started.map(({ service, running }) => [service, residentMb(running.pid)]));
}

/** The highest value seen while the load runs. */
async function sampleUnderLoad(
  client: Connection,
  started: readonly Started[],
  warmUpMs: number,
  measureMs: number,
): Promise<Megabytes> {
  const highest = new Map<ServiceName, number>();
  const load = await Load.open({
    bus: client.bus,
    ingress: client.topics.ingress(),
    results: client.topics.fixed('scored-results'),
    requests: encodedRequests(REQUEST_BYTES, client.codecs.for('ScoreRequest')),
  });
  const timer = setInterval(() => {
    for (const [service, megabytes] of sample(started))
      highest.set(service, Math.max(megabytes, highest.get(service) ?? 0));
  }, SAMPLE_MS);
  await load.openLoop(PER_SECOND, { ms: warmUpMs, requests: 0 }, measureMs);
  clearInterval(timer);
  await load.close();
  return highest;
}

function rowsOf(
  service: ServiceName,
  readyS: readonly number[],
  { idle, loaded, own }: { idle: Megabytes; loaded: Megabytes; own: Megabytes },
): BenchRow[] {
  const isRouter = service === 'request-router';
  return [
    {
      metric: `${service}, start to ready`,
      value: median(readyS),
      unit: 's',
      target: READY_S_MAX,
      relation: '<=',
    },
    { metric: `${service}, resident, idle`, value: idle.get(service) ?? Number.NaN, unit: 'MB' },
    {
      metric: `${service}, resident, at ${PER_SECOND} requests/s (highest)`,
      value: loaded.get(service) ?? Number.NaN,
      unit: 'MB',
      ...(isRouter ? { target: ROUTER_MB_MAX, relation: '<=' as const } : {}),
    },
    {
      metric: `${service}, of it its own: all but the Node program, which all services share`,
      value: own.get(service) ?? Number.NaN,
      unit: 'MB',
    },
  ];
}
