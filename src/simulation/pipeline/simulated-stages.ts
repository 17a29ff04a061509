import { memoryBroker } from '../../adapters/memory/bus.ts';
import { memoryControlServer } from '../../adapters/memory/control-store.ts';
import { memorySchemaRegistry } from '../../adapters/memory/schema-registry.ts';
import { silentTelemetry } from '../../adapters/memory/telemetry.ts';
import type { Connection } from '../../client/connection.ts';
import type { Settings } from '../../config/settings.ts';
import { type Codecs, createCodecs } from '../../contracts/codec.ts';
import { recordTopics, topicSpecs } from '../../contracts/topic-specs.ts';
import { topicNames } from '../../contracts/topics.ts';
import { MillraceError } from '../../core/errors.ts';
import { createTopicDelay } from '../../core/latency/topic-delay.ts';
import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { scopedRandom } from '../../core/random/scoped-random.ts';
import type { SeededRandom } from '../../core/random/seeded-random.ts';
import { createSignalExtractor } from '../../core/signals/extract.ts';
import { withCascades } from '../../inference/cascade/cascade-accelerator.ts';
import { costModels } from '../../inference/cost-models.ts';
import { expectedSpeed } from '../../inference/expected-speed.ts';
import type { ModelRepository } from '../../inference/repository/open-repository.ts';
import { createSimulatedAccelerator } from '../../inference/simulated/accelerator.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import { createAcceleratorWorkerStage } from '../../stages/accelerator-worker/stage.ts';
import type { Worker } from '../../stages/accelerator-worker/worker.ts';
import { createFeatureExtractorStage } from '../../stages/feature-extractor/stage.ts';
import { createPolicyControllerStage } from '../../stages/policy-controller/stage.ts';
import type { ActivePolicy } from '../../stages/request-router/active-policy.ts';
import type { Router } from '../../stages/request-router/router.ts';
import { createRequestRouterStage } from '../../stages/request-router/stage.ts';
import type { Stage, StageDeps } from '../../stages/stage.ts';
import { fasterProfile } from '../fleet/faster-profile.ts';
import type { SimulatedFleet, SimulatedPool } from '../fleet/simulated-fleet.ts';
import { type Host, HostClock } from '../host.ts';
import { Hosts } from '../hosts.ts';
import { type VirtualClock, virtualClock } from '../virtual-clock.ts';
import { controllerConfig, extractorConfig, routerConfig, workerConfig } from './stage-configs.ts';

/** What a pipeline is simulated of. */
export interface SimulatedStagesOptions {
  fleet: SimulatedFleet;
  policy: ActivePolicy;
  /** Of the stages; those of places and names are not looked at. */
  settings: Settings;
  /** Opened before: time that is virtual waits for no file. */
  repository: ModelRepository;
  random: SeededRandom;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  checkPolicy(bytes: Uint8Array): CompiledPolicy['document'];
}

type WorkerStage = Stage & { worker: Worker };

/** Of what nobody reads any more as much as this stays in the memory; a backlog that is larger is lost, and the report says so. */
const TOPIC_BYTES_MAX = 2 ** 27;
/** Nothing that starts takes longer. */
const SETTLED_MS = 60_000;

/** The stages of the real pipeline, each process on a host of its own, on an in-memory bus and in virtual time. */
export class SimulatedStages {
  readonly clock: VirtualClock = virtualClock();
  readonly topics = topicNames('sim');
  readonly telemetry = silentTelemetry();
  readonly #options: SimulatedStagesOptions;
  readonly #broker;
  readonly #store;
  readonly #hosts: Hosts;
  readonly #codecs: Codecs;
  readonly #workers = new Map<string, Map<number, Host<WorkerStage>>>();
  readonly #routers: Host<Stage & { router: Router }>[] = [];
  #lives = 0;

  constructor(options: SimulatedStagesOptions) {
    this.#options = options;
    const { clock, telemetry } = this;
    this.#broker = memoryBroker({
      clock,
      deliveryDelayMs: options.fleet.hopMs,
      topicBytesMax: TOPIC_BYTES_MAX,
    });
    this.#store = memoryControlServer({ clock });
    this.#codecs = createCodecs({ registry: memorySchemaRegistry(), clock });
    const { sessionTimeoutMs, drainTimeoutMs } = options.settings.kafka;
    this.#hosts = new Hosts({ clock, broker: this.#broker, telemetry, sessionTimeoutMs, drainTimeoutMs });
  }

  /** Topics, then one process of everything, and a worker per slot. */
  async open(): Promise<void> {
    const { topics } = this;
    const { fleet, repository } = this.#options;
    const pools = new Map(fleet.pools.map(({ pool, slots }) => [pool, slots]));
    for (const { versions } of repository.families)
      for (const version of versions) await repository.itemTables(version);
    await this.#codecs.register(recordTopics({ topics, tenants: [], pools: pools.keys() }));
    const admin = this.#hosts.connect('admin');
    const { partitions } = fleet;
    await this.settle(
      admin.admin.createTopics(topicSpecs({ topics, partitions, replication: 1, pools, tenants: [] })),
    );
    await this.settle(admin.close());
    for (const pool of fleet.pools)
      for (let slot = 0; slot < pool.slots; slot += 1) this.startWorker(pool, slot);
    this.#startController();
    for (let n = 0; n < fleet.routers; n += 1) this.#startRouter(n);
    for (let n = 0; n < fleet.extractors; n += 1) this.#startExtractor(n);
    await this.#hosts.allSettled((promise) => this.settle(promise));
  }

  /** A client of this pipeline. */
  connect(name: string): Connection {
    const bus = this.#hosts.connect(name);
    return {
      bus,
      codecs: this.#codecs,
      topics: this.topics,
      clock: new HostClock(this.clock),
      telemetry: this.telemetry,
      newId: () => name,
      close: () => bus.close(),
    };
  }

  /** Lets time go on until the promise has settled. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    promise.then(done, done);
    if (!(await this.clock.runUntil(() => settled, SETTLED_MS)))
      throw new Error('a promise did not settle in a virtual minute');
    return promise;
  }

  /** Workers of the pool that are up, by slot. */
  workersOf(pool: string): readonly Host<WorkerStage>[] {
    return [...(this.#workers.get(pool)?.values() ?? [])].filter(({ state }) => state === 'up');
  }

  /** Requests that routers hold and have not dispatched, or that are under way to a worker and back. */
  inRouters(): number {
    return this.#routers.reduce((sum, { stage }) => sum + (stage?.inFlight() ?? 0), 0);
  }

  isUp(pool: string, slot: number): boolean {
    return this.#workers.get(pool)?.get(slot)?.state === 'up';
  }

  /** As SIGTERM for the worker of this slot, where one is up. */
  dismiss(pool: string, slot: number): void {
    const host = this.#workers.get(pool)?.get(slot);
    if (host?.state === 'up') void this.#hosts.close(host);
  }

  /** As kill -9 for the worker of this slot, also for one that is on its way out. */
  kill(pool: string, slot: number): void {
    const host = this.#workers.get(pool)?.get(slot);
    if (host !== undefined && host.state !== 'crashed') this.#hosts.crash(host);
  }

  startWorker(pool: SimulatedPool, slot: number): void {
    const { settings, repository, random } = this.#options;
    const name = `${pool.pool}-${slot}`;
    const life = this.#lives + 1;
    const host = this.#start<WorkerStage>(name, async (deps) => {
      const own = scopedRandom(random, name);
      const simulated = createSimulatedAccelerator(
        { repository, clock: deps.clock, random: own, standIns: 'alike' },
        fasterProfile(pool.profile, pool.speed),
      );
      const backend = withCascades(simulated, repository);
      const models = await Promise.all(
        repository.families.flatMap(({ family, versions }) =>
          versions.map(({ version }) => backend.load(family, version)),
        ),
      );
      return createAcceleratorWorkerStage(
        workerConfig(settings, { pool, slot, life, expectedSpeed: expectedSpeed(models, repository) }),
        {
          ...deps,
          backend,
          models,
          store: this.#store.connect(),
          library: NO_LIBRARY,
          digest: this.#options.digest,
        },
      );
    });
    let workers = this.#workers.get(pool.pool);
    if (workers === undefined) {
      workers = new Map();
      this.#workers.set(pool.pool, workers);
    }
    workers.set(slot, host);
  }

  #startController(): void {
    const { settings, digest, checkPolicy } = this.#options;
    this.#start('controller', (deps) =>
      createPolicyControllerStage(controllerConfig(settings), {
        ...deps,
        store: this.#store.connect(),
        digest,
        checkPolicy,
      }),
    );
  }

  #startRouter(n: number): void {
    const { settings, fleet, policy } = this.#options;
    const config = routerConfig(settings, { name: `router-${n}`, ackPartition: n % fleet.partitions, fleet });
    this.#routers.push(this.#start(`router-${n}`, (deps) => createRequestRouterStage(config, deps, policy)));
  }

  #startExtractor(n: number): void {
    const { settings, fleet, repository } = this.#options;
    const config = extractorConfig(settings, {
      topics: this.topics,
      repository,
      partitions: fleet.partitions,
    });
    const signals = createSignalExtractor(costModels(repository));
    this.#start(`extractor-${n}`, (deps) => createFeatureExtractorStage(config, { ...deps, signals }));
  }

  #start<S extends Stage>(name: string, open: (deps: StageDeps) => Promise<S>): Host<S> {
    this.#lives += 1;
    const { hopMs } = this.#options.fleet;
    // What a sender waits for after its record is stored holds up no request.
    const delays = { thereMs: hopMs, backMs: 0, commitMs: 0 };
    return this.#hosts.start({ name, bootedMs: 0, delays }, (on) =>
      open({
        ...on,
        codecs: this.#codecs,
        topics: this.topics,
        random: scopedRandom(this.#options.random, name),
        telemetry: this.telemetry,
        topicDelay: createTopicDelay(),
      }),
    );
  }
}

/** No version is published in a simulation. */
const NO_LIBRARY: ModelLibrary = {
  fetch: async () => {
    throw new MillraceError('MODEL_UNAVAILABLE', 'a simulation fetches no model versions');
  },
  forget: async () => undefined,
  retain: async () => undefined,
  keepCatalogue: async () => undefined,
  keptCatalogue: async () => undefined,
};
