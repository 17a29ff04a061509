import { cpus } from 'node:os';
import { join } from 'node:path';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import type { ServiceName } from '../../src/cli/service-processes.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { packageRoot } from '../../src/config/package-root.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { applyTopics, plannedTopics } from '../../src/wiring/apply-topics.ts';
import { kafkaTransport } from '../../src/wiring/runtime.ts';
import { countRelayed, readBooks } from './books.ts';
import { Load, type Observed, type WarmUp } from './load.ts';
import { cpuMs, machineBusyMs, quietMachine } from './machine.ts';
import { type ExactRequests, encodedRequests } from './requests.ts';
import { startStreams } from './streams.ts';
import { type Environment, type Subject, startAllStages, startRelay, startServices } from './subject.ts';

/** What stands between ingress and scored-results. */
export type Variant =
  | { kind: 'relay'; layout: Layout; patched: boolean; resultBytes?: number }
  | { kind: 'pipeline'; layout: Layout; environment?: Environment; requests?: ExactRequests }
  | { kind: 'streams' };

/** All in one process, or a process for each hop. */
export type Layout = 'one-process' | 'process-each';

export type LoadPlan = { kind: 'closed'; window: number } | { kind: 'open'; perSecond: number };

export interface RunOptions {
  requestBytes: number;
  load: LoadPlan;
  warmUp: WarmUp;
  measureMs: number;
  /** Waits for no quiet moment. */
  disturbed?: boolean;
}

export interface RunResult extends Observed {
  /** CPU of the subject's processes, and of the broker, per request completed while measuring, µs. */
  cpuUs: number;
  brokerCpuUs: number;
  /** What all other processes took of the machine's cores meanwhile, 0 … 1. */
  othersShare: number;
}

const POOL = 'cpu';
const PARTITIONS = 4;
/** A machine that somebody else works on is waited for, but not for ever. */
const QUIET_SHARE_MAX = 0.15;
const QUIET_PATIENCE_MS = 60_000;

let runs = 0;

/** The settings of a pipeline of its own on the stack, as its processes read them from the environment. */
export function newEnvironment(stack: Stack, variant?: Variant): Record<string, string> {
  runs += 1;
  return {
    ...stack.environment,
    MILLRACE_PREFIX: `bench${process.pid}-${runs}`,
    MILLRACE_FLEET: join(packageRoot(), 'examples', 'fleets', 'one-pool.yaml'),
    MILLRACE_POLICY: join(packageRoot(), 'examples', 'policies', 'one-pool.yaml'),
    MILLRACE_KAFKA_PARTITIONS: String(PARTITIONS),
    MILLRACE_SLOTS_PER_POOL: String(PARTITIONS),
    MILLRACE_WORKER_POOL: POOL,
    MILLRACE_WORKER_SLOTS: [...Array(PARTITIONS).keys()].join(','),
    MILLRACE_WORKER_BACKEND: 'immediate',
    ...(variant?.kind === 'pipeline' ? variant.environment : {}),
  };
}

/** One measurement: topics and processes of its own, warm-up, load, then the books; all gone afterwards. @throws Error where a request was lost */
export async function runOnce(stack: Stack, variant: Variant, options: RunOptions): Promise<RunResult> {
  if (options.disturbed !== true) await quietMachine(QUIET_SHARE_MAX, QUIET_PATIENCE_MS);
  const environment = newEnvironment(stack, variant);
  const { settings } = loadSettings(environment);
  const client = await kafkaTransport(settings, silentTelemetry()).open();
  let subject: Subject | undefined;
  try {
    await applyTopics(settings, client.bus);
    subject = await startSubject(variant, settings, environment, client);
    const requests = (variant.kind === 'pipeline' ? variant.requests : undefined) ?? options.requestBytes;
    const result = await underLoad(stack, subject, client, options, requests);
    await subject.stop();
    subject = undefined;
    await checkBooks(variant, client);
    return result;
  } finally {
    await subject?.stop();
    await client.bus.admin.deleteTopics(plannedTopics(settings).map(({ name }) => name));
    await client.close();
  }
}

function startSubject(
  variant: Variant,
  settings: Settings,
  environment: Environment,
  { topics }: Connection,
): Promise<Subject> {
  const chain = [topics.ingress(), topics.fixed('features'), topics.dispatch(POOL)];
  if (variant.kind === 'streams') {
    const { brokers } = settings.kafka;
    return startStreams({ brokers, topics: [...chain, topics.fixed('scored-results')] });
  }
  const oneProcess = variant.layout === 'one-process';
  if (variant.kind === 'pipeline') {
    return oneProcess ? startAllStages(environment) : startServices(environment, servicesOf(settings));
  }
  const hops = chain.map((from, index) => {
    const to = chain[index + 1] ?? topics.fixed('scored-results');
    const isLast = index === chain.length - 1;
    return isLast && variant.resultBytes !== undefined
      ? { from, to, valueBytesMax: variant.resultBytes }
      : { from, to };
  });
  return startRelay({ brokers: settings.kafka.brokers, hops, patched: variant.patched }, oneProcess);
}

function servicesOf(settings: Settings): ServiceName[] {
  const all: ServiceName[] = ['policy-controller', 'request-router', 'accelerator-worker'];
  return settings.topology === 'split' ? ['feature-extractor', ...all] : all;
}

async function underLoad(
  stack: Stack,
  subject: Subject,
  client: Connection,
  options: RunOptions,
  requests: number | ExactRequests,
): Promise<RunResult> {
  const meter = new CpuMeter(subject.pids, stack);
  const load = await Load.open({
    bus: client.bus,
    ingress: client.topics.ingress(),
    results: client.topics.fixed('scored-results'),
    requests: encodedRequests(requests, client.codecs.for('ScoreRequest')),
    onMeasuring: (at) => (at === 'start' ? meter.start() : meter.stop()),
  });
  const { warmUp, measureMs } = options;
  const observed =
    options.load.kind === 'closed'
      ? await load.closedLoop(options.load.window, warmUp, measureMs)
      : await load.openLoop(options.load.perSecond, warmUp, measureMs);
  await load.close();
  return { ...observed, ...meter.read(observed.completed) };
}

/** CPU of the subject, of the broker, and of whoever else runs on the machine. */
class CpuMeter {
  readonly #subject: readonly number[];
  readonly #broker: readonly number[];
  readonly #ours: readonly number[];
  #subjectMs = 0;
  #brokerMs = 0;
  #othersMs = 0;
  #wallMs = 0;

  constructor(subject: readonly number[], stack: Stack) {
    this.#subject = subject;
    this.#broker = [stack.pids['kafka-1'] ?? -1];
    this.#ours = [...subject, ...Object.values(stack.pids), process.pid];
  }

  start(): void {
    this.#count(-1);
  }

  stop(): void {
    this.#count(1);
  }

  read(completed: number): Pick<RunResult, 'cpuUs' | 'brokerCpuUs' | 'othersShare'> {
    return {
      cpuUs: (this.#subjectMs * 1_000) / completed,
      brokerCpuUs: (this.#brokerMs * 1_000) / completed,
      othersShare: this.#othersMs / (this.#wallMs * cpus().length),
    };
  }

  #count(sign: 1 | -1): void {
    this.#subjectMs += sign * cpuMs(this.#subject);
    this.#brokerMs += sign * cpuMs(this.#broker);
    this.#othersMs += sign * (machineBusyMs() - cpuMs(this.#ours));
    this.#wallMs += sign * performance.now();
  }
}

async function checkBooks(variant: Variant, client: Connection): Promise<void> {
  if (variant.kind !== 'pipeline') {
    const counted = await countRelayed(client);
    if (counted.ingress !== counted.results)
      throw new Error(`the relay lost records: ${JSON.stringify(counted)}`);
    return;
  }
  const books = await readBooks(client);
  if (!books.balanced || books.inFlight !== 0 || books.outcomes.scored !== books.ingress)
    throw new Error(`not every request was scored: ${JSON.stringify(books)}`);
}
