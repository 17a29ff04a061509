import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyPatches } from '../../src/adapters/kafka/kafkajs/patches.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import {
  type ServiceName,
  type ServiceProcess,
  startServiceProcess,
} from '../../src/cli/service-processes.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { applyTopics } from '../../src/wiring/apply-topics.ts';
import { kafkaTransport } from '../../src/wiring/runtime.ts';

/** A process of the pipeline, by the name that a test calls it. */
export interface PlannedProcess {
  name: string;
  service: ServiceName;
  environment?: Record<string, string>;
}

/** Every service as a process of its own on real Kafka, registry and Redis, and a client that is none of them. */
export interface RealPipeline {
  readonly settings: Settings;
  readonly client: Connection;
  readonly logFolder: string;
  process(name: string): ServiceProcess;
  /** kill -9, and waits until it is gone. */
  kill(name: string): Promise<void>;
  /** SIGTERM, and waits until it is gone. */
  stop(name: string): Promise<void>;
  /** @param environment beside what was planned */
  start(name: string, environment?: Readonly<Record<string, string>>): Promise<void>;
  close(): Promise<void>;
}

// The stack warms its broker with the client as it comes.
applyPatches();

let pipelines = 0;

/** One pool of one or more workers, one router, one extractor, one controller, unless `processes` says otherwise. */
export async function startRealPipeline(
  stack: Readonly<Record<string, string>>,
  options: {
    processes?: readonly PlannedProcess[];
    /** Not started until the test does. */
    later?: readonly PlannedProcess[];
    environment?: Record<string, string>;
  } = {},
): Promise<RealPipeline> {
  pipelines += 1;
  const environment: Record<string, string> = {
    ...stack,
    MILLRACE_PREFIX: `t${process.pid}-${pipelines}`,
    MILLRACE_FLEET: 'examples/fleets/one-pool.yaml',
    MILLRACE_POLICY: 'examples/policies/one-pool.yaml',
    MILLRACE_KAFKA_PARTITIONS: '4',
    ...options.environment,
  };
  const { settings } = loadSettings(environment);
  const client = await kafkaTransport(settings, silentTelemetry()).open();
  await applyTopics(settings, client.bus);
  const logFolder = mkdtempSync(join(tmpdir(), 'millrace-pipeline-'));
  const atOnce = options.processes ?? DEFAULT_PROCESSES;
  const planned = new Map([...atOnce, ...(options.later ?? [])].map((plan) => [plan.name, plan]));
  const running = new Map<string, ServiceProcess>();
  const start = async (name: string, more: Readonly<Record<string, string>> = {}): Promise<void> => {
    const plan = planned.get(name);
    if (plan === undefined) throw new Error(`no process ${name} was planned`);
    running.set(
      name,
      await startServiceProcess({
        service: plan.service,
        name,
        logFolder,
        tell: console.error,
        environment: { ...environment, ...plan.environment, ...more },
      }),
    );
  };
  await Promise.all(atOnce.map(({ name }) => start(name)));
  const find = (name: string): ServiceProcess => {
    const found = running.get(name);
    if (found === undefined) throw new Error(`${name} does not run`);
    return found;
  };
  return {
    settings,
    client,
    logFolder,
    process: find,
    async kill(name) {
      const victim = find(name);
      victim.kill('SIGKILL');
      await victim.ended;
      running.delete(name);
    },
    async stop(name) {
      const leaving = find(name);
      leaving.kill('SIGTERM');
      await leaving.ended;
      running.delete(name);
    },
    start,
    async close() {
      for (const survivor of running.values()) survivor.kill('SIGTERM');
      await Promise.all([...running.values()].map((survivor) => survivor.ended));
      await client.close();
    },
  };
}

export const DEFAULT_PROCESSES: readonly PlannedProcess[] = [
  { name: 'controller', service: 'policy-controller' },
  { name: 'extractor', service: 'feature-extractor' },
  { name: 'router', service: 'request-router' },
  {
    name: 'worker-1',
    service: 'accelerator-worker',
    environment: {
      MILLRACE_WORKER_NAME: 'worker-1',
      MILLRACE_WORKER_POOL: 'cpu',
      MILLRACE_WORKER_SLOTS: '0,1',
    },
  },
  {
    name: 'worker-2',
    service: 'accelerator-worker',
    environment: {
      MILLRACE_WORKER_NAME: 'worker-2',
      MILLRACE_WORKER_POOL: 'cpu',
      MILLRACE_WORKER_SLOTS: '2,3',
    },
  },
];

/** Waits, generously, until the condition holds. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 60_000,
): Promise<void> {
  const until = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > until) throw new Error(`not so within ${timeoutMs / 1_000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
