import { type SilentTelemetry, silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../../src/adapters/redis/control-store.ts';
import { confluentSchemaRegistry } from '../../src/adapters/registry/confluent.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { createCodecs } from '../../src/contracts/codec.ts';
import { recordTopics } from '../../src/contracts/topic-specs.ts';
import { type TopicNames, topicNames } from '../../src/contracts/topics.ts';
import { createTopicDelay } from '../../src/core/latency/topic-delay.ts';
import { fleetPools, poolOf } from '../../src/core/policy/fleet-pools.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { growingRepository } from '../../src/inference/repository/growing-repository.ts';
import type { ControlStore } from '../../src/ports/control-store.ts';
import type { MessageBus, TopicSpec } from '../../src/ports/message-bus.ts';
import type { Stage, StageDeps } from '../../src/stages/stage.ts';
import { startAcceleratorWorker } from '../../src/wiring/accelerator-worker.ts';
import { plannedTopics } from '../../src/wiring/apply-topics.ts';
import { createBackend, loadModels, openLibrary, openModels } from '../../src/wiring/backends.ts';
import { startFeatureExtractor } from '../../src/wiring/feature-extractor.ts';
import { startPolicyController } from '../../src/wiring/policy-controller.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { whenReady } from '../../src/wiring/ready.ts';
import { startRequestRouter } from '../../src/wiring/request-router.ts';
import { openBus } from '../../src/wiring/runtime.ts';
import { type SwitchableRegistry, switchableRegistry } from './switchable-registry.ts';

/** Every stage in the process of the test, on the real Kafka, registry and Redis that the environment names, under a prefix of its own. */
export interface InProcessPipeline {
  readonly settings: Settings;
  readonly topics: TopicNames;
  readonly stages: readonly Stage[];
  /** What the stages look schemas up in. */
  readonly registry: SwitchableRegistry;
  readonly store: ControlStore;
  /** Logs and metrics of all stages. */
  readonly telemetry: SilentTelemetry;
  /** An outside client, with a registry of its own that cannot be switched off. */
  readonly client: Connection;
  /** Drains the stages, and removes the topics. */
  close(): Promise<void>;
}

export interface InProcessOptions {
  /** Changes what a topic is created with. */
  topic?(spec: TopicSpec, topics: TopicNames): TopicSpec;
}

const READY_MS = 60_000;
let pipelines = 0;

/** One pool with one worker, one router, one extractor, one controller; `overrides` are settings by their dotted paths. */
export async function startInProcessPipeline(
  overrides: Readonly<Record<string, unknown>> = {},
  options: InProcessOptions = {},
): Promise<InProcessPipeline> {
  const settings = testSettings(overrides);
  const fleet = readFleet(settings);
  const clock = systemClock();
  const telemetry = silentTelemetry();
  const topics = topicNames(settings.prefix);
  const openRegistry = () => confluentSchemaRegistry({ url: settings.registryUrl });
  const registry = switchableRegistry(openRegistry());
  const store = redisControlStore({ url: settings.redisUrl, prefix: settings.prefix, telemetry, clock });
  const written = recordTopics({ topics, tenants: settings.tenants, pools: poolNames(settings) });
  const open: Stage[] = [];
  const buses: MessageBus[] = [];
  const connect = async (name: string): Promise<MessageBus> => {
    const bus = await openBus(settings, name, telemetry);
    buses.push(bus);
    return bus;
  };
  const openDeps = async (name: string): Promise<StageDeps> => {
    const codecs = createCodecs({ registry, clock });
    await codecs.register(written);
    return {
      bus: await connect(name),
      codecs,
      topics,
      clock,
      random: seededRandom(1),
      telemetry,
      topicDelay: createTopicDelay(),
    };
  };

  const admin = await connect('admin');
  const specs = plannedTopics(settings).map((spec) => options.topic?.(spec, topics) ?? spec);
  await admin.admin.createTopics(specs);
  const repository = growingRepository(await openModels(settings, telemetry));
  const versions = openLibrary(settings, { repository, clock, telemetry });
  const { accelerator } = poolOf(fleet, settings.worker.pool);
  const backend = createBackend(settings, accelerator, { repository, clock, random: seededRandom(1) });
  const models = await loadModels(backend, repository, telemetry);

  open.push(
    await startAcceleratorWorker(settings, await openDeps('worker'), {
      ...{ fleet, backend, models, repository, store },
      library: versions.library,
    }),
  );
  open.push(await startPolicyController(settings, await openDeps('controller'), { fleet, store }));
  open.push(
    await startRequestRouter(settings, await openDeps('router'), {
      fleet,
      store,
      openModels: async () => repository,
    }),
  );
  if (settings.topology === 'split')
    open.push(await startFeatureExtractor(settings, await openDeps('extractor'), repository));
  const unready = await whenReady(open, clock, READY_MS);
  if (unready !== undefined) throw new Error(`the pipeline does not get ready: ${unready}`);

  const codecs = createCodecs({ registry: openRegistry(), clock });
  await codecs.register(written);
  const bus = await connect('client');
  return {
    settings,
    topics,
    stages: open,
    registry,
    store,
    telemetry,
    client: {
      bus,
      codecs,
      topics,
      clock,
      telemetry,
      newId: () => crypto.randomUUID(),
      close: () => bus.close(),
    },
    async close() {
      registry.switchOn();
      for (const stage of [...open].reverse()) await stage.close();
      await admin.admin.deleteTopics(specs.map(({ name }) => name));
      await Promise.all(buses.map((each) => each.close()));
      await store.close();
      await backend.close();
      versions.close();
    },
  };
}

function testSettings(overrides: Readonly<Record<string, unknown>>): Settings {
  pipelines += 1;
  const { settings } = loadSettings(
    {
      MILLRACE_KAFKA_BROKERS: process.env['MILLRACE_KAFKA_BROKERS'],
      MILLRACE_REGISTRY_URL: process.env['MILLRACE_REGISTRY_URL'],
      MILLRACE_REDIS_URL: process.env['MILLRACE_REDIS_URL'],
    },
    {
      prefix: `in-process-${process.pid}-${Date.now().toString(36)}-${pipelines}`,
      fleet: 'examples/fleets/one-pool.yaml',
      policy: 'examples/policies/one-pool.yaml',
      slotsPerPool: 2,
      'worker.slots': [0, 1],
      'kafka.partitions': 4,
      'controller.acceptUnsigned': true,
      ...overrides,
    },
  );
  return settings;
}

function poolNames(settings: Settings): string[] {
  return fleetPools(readFleet(settings)).map(({ pool }) => pool);
}
