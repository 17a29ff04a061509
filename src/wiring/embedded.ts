import { randomUUID } from 'node:crypto';
import { memoryBroker } from '../adapters/memory/bus.ts';
import { memoryControlStore } from '../adapters/memory/control-store.ts';
import { memoryFeatureSource } from '../adapters/memory/feature-source.ts';
import { memorySchemaRegistry } from '../adapters/memory/schema-registry.ts';
import { systemClock } from '../adapters/system/clock.ts';
import type { Connection } from '../client/connection.ts';
import type { Settings } from '../config/settings.ts';
import { createCodecs } from '../contracts/codec.ts';
import { recordTopics } from '../contracts/topic-specs.ts';
import { topicNames } from '../contracts/topics.ts';
import { MillraceError } from '../core/errors.ts';
import { createTopicDelay } from '../core/latency/topic-delay.ts';
import { fleetPools, type PoolOfFleet } from '../core/policy/fleet-pools.ts';
import { growingRepository } from '../inference/repository/growing-repository.ts';
import type { Accelerator } from '../ports/accelerator.ts';
import type { Clock } from '../ports/clock.ts';
import type { FeatureSource } from '../ports/feature-source.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { RandomSource } from '../ports/random.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import { startAcceleratorWorker } from './accelerator-worker.ts';
import { applyTopics } from './apply-topics.ts';
import { createBackend, loadModels, openLibrary, openModels } from './backends.ts';
import { startFeatureExtractor } from './feature-extractor.ts';
import { openFeatureSource } from './feature-source.ts';
import { startPolicyController } from './policy-controller.ts';
import { readBuiltInPolicy, readFleet } from './policy-files.ts';
import { startRequestRouter } from './request-router.ts';

/** Everything in one process: the stages of the real pipeline on the in-memory bus. */
export interface EmbeddedPipeline {
  clock: Clock;
  stages: readonly Stage[];
  /** Name and version of the policy that it starts with. */
  policyName: string;
  pools: readonly { pool: string; accelerator: string; simulated: boolean }[];
  /** Rejects when an accelerator can compute no more: then only a new pipeline helps. */
  failed: Promise<never>;
  /** A client's way in. */
  connect(): Promise<Connection>;
  close(): Promise<void>;
}

export interface EmbeddedDeps {
  telemetry: Telemetry;
  random: RandomSource;
  clock?: Clock;
  /** Where rows of features are read; the store of the settings, or one without a row. */
  features?: FeatureSource;
}

export async function startEmbedded(
  settings: Settings,
  { telemetry, random, clock = systemClock(), features: given }: EmbeddedDeps,
): Promise<EmbeddedPipeline> {
  const fleet = readFleet(settings);
  // Before anything is started: a policy that is refused leaves nothing behind.
  const { name, version } = readBuiltInPolicy(settings, fleet).ref;
  const pools = fleetPools(fleet);
  const topics = topicNames(settings.prefix);
  const registry = memorySchemaRegistry();
  const store = memoryControlStore(clock);
  const broker = memoryBroker({ clock });
  const connectBus = (name: string): MessageBus =>
    broker.connect({
      clientId: name,
      drainTimeoutMs: settings.kafka.drainTimeoutMs,
      sessionTimeoutMs: settings.kafka.sessionTimeoutMs,
      telemetry,
    });
  const poolNames = pools.map(({ pool }) => pool);
  const openDeps = async (name: string): Promise<StageDeps> => {
    const codecs = createCodecs({ registry, clock });
    await codecs.register(recordTopics({ topics, tenants: settings.tenants, pools: poolNames }));
    return {
      bus: connectBus(name),
      codecs,
      topics,
      clock,
      random,
      telemetry,
      topicDelay: createTopicDelay(),
    };
  };
  await createTopics(settings, connectBus('admin'));
  const repository = growingRepository(await openModels(settings, telemetry));
  const versions = openLibrary(settings, { repository, clock, telemetry });
  const features = given ?? openFeatureSource(settings, { clock, telemetry }) ?? memoryFeatureSource(clock);
  const stages: Stage[] = [];
  const buses: MessageBus[] = [];
  const backends: Accelerator[] = [];
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined); // whoever does not wait for it reads it in the log
  const close = async (): Promise<void> => {
    for (const stage of [...stages].reverse()) await stage.close();
    for (const bus of buses) await bus.close();
    for (const backend of backends) await backend.close();
    versions.close();
    if (given === undefined) await features.close();
  };
  const start = async (stage: string, open: (deps: StageDeps) => Promise<Stage>): Promise<void> => {
    const deps = await openDeps(stage);
    buses.push(deps.bus);
    stages.push(await open(deps));
  };
  const rollout = settings.controller.rollout === 'auto' ? 'immediate' : settings.controller.rollout;
  const trusting = {
    ...settings,
    controller: { ...settings.controller, acceptUnsigned: true, autoPromote: true, rollout },
  };
  const startWorker = async ({ pool, accelerator, simulated }: PoolOfFleet): Promise<void> => {
    const worker = {
      ...settings.worker,
      pool,
      name: `${pool}-1`,
      slots: [...Array(settings.slotsPerPool).keys()],
      shareSlots: false,
      backend: simulated ? ('simulated' as const) : settings.worker.backend,
    };
    const own = { ...trusting, worker };
    const backend = createBackend(own, accelerator, { repository, clock, random });
    backends.push(backend);
    void backend.failed.then((reason) => {
      telemetry.logger.error({ pool, reason }, 'an accelerator failed');
      failure.reject(acceleratorFailed(pool, reason));
    });
    const models = await loadModels(backend, repository, telemetry);
    await start(`worker-${pool}`, (deps) =>
      startAcceleratorWorker(own, deps, {
        ...{ fleet, backend, models, repository, store },
        library: versions.library,
        features,
      }),
    );
  };
  try {
    for (const pool of pools) await startWorker(pool);
    await start('controller', (deps) => startPolicyController(trusting, deps, { fleet, store }));
    // The store begins anew with every run: an epoch that an earlier run kept would stand in its way.
    const forgetful = { ...trusting, router: { ...settings.router, stateFolder: '' } };
    await start('router', (deps) =>
      startRequestRouter(forgetful, deps, {
        fleet,
        store,
        openModels: async () => repository,
        // On a clock that may be virtual nothing outside of it is waited for.
        checkIn: 'event-loop',
      }),
    );
    if (settings.topology === 'split')
      await start('extractor', (deps) => startFeatureExtractor(settings, deps, repository));
  } catch (error) {
    // Whoever could not start it all must not be kept running by what did start.
    await close();
    throw error;
  }
  return {
    clock,
    policyName: `${name}@${version}`,
    stages,
    pools,
    failed: failure.promise,
    async connect() {
      const { bus, codecs } = await openDeps(`client-${randomUUID().slice(0, 8)}`);
      return { bus, codecs, topics, clock, telemetry, newId: () => randomUUID(), close: () => bus.close() };
    },
    close,
  };
}

function acceleratorFailed(pool: string, reason: string): MillraceError {
  return new MillraceError('MODEL_FAILED', `the accelerator of pool ${pool} failed: ${reason}`);
}

async function createTopics(settings: Settings, bus: MessageBus): Promise<void> {
  await applyTopics({ ...settings, kafka: { ...settings.kafka, replication: 1 } }, bus);
  await bus.close();
}
