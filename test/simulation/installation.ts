import { memoryBroker } from '../../src/adapters/memory/bus.ts';
import { memoryControlServer } from '../../src/adapters/memory/control-store.ts';
import { memoryLastKnownGood } from '../../src/adapters/memory/last-known-good.ts';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { type Codecs, createCodecs } from '../../src/contracts/codec.ts';
import { recordTopics, topicSpecs } from '../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../src/core/latency/topic-delay.ts';
import { poolOf, poolsOf } from '../../src/core/policy/fleet-pools.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { createSignalExtractor } from '../../src/core/signals/extract.ts';
import { growingRepository } from '../../src/inference/repository/growing-repository.ts';
import { createSimulatedAccelerator } from '../../src/inference/simulated/accelerator.ts';
import type { ControlStore } from '../../src/ports/control-store.ts';
import type { LastKnownGood } from '../../src/ports/last-known-good.ts';
import type { RandomStream } from '../../src/ports/random.ts';
import { type Host, HostClock } from '../../src/simulation/host.ts';
import { Hosts } from '../../src/simulation/hosts.ts';
import { type VirtualClock, virtualClock } from '../../src/simulation/virtual-clock.ts';
import { createAcceleratorWorkerStage } from '../../src/stages/accelerator-worker/stage.ts';
import { createFeatureExtractorStage } from '../../src/stages/feature-extractor/stage.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../src/stages/policy-controller/controller-config.ts';
import { createPolicyControllerStage } from '../../src/stages/policy-controller/stage.ts';
import { createFusedStage } from '../../src/stages/request-router/fused-stage.ts';
import { PolicySource } from '../../src/stages/request-router/policy-source.ts';
import { Router } from '../../src/stages/request-router/router.ts';
import { createRequestRouterStage, type RequestRouterConfig } from '../../src/stages/request-router/stage.ts';
import type { Stage, StageDeps } from '../../src/stages/stage.ts';
import { type OutsideLedger, openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { startPolicyController } from '../../src/wiring/policy-controller.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';
import { type SwitchableRegistry, switchableRegistry } from '../integration/switchable-registry.ts';
import { noLibrary } from '../unit/stages/accelerator-worker/library.fixture.ts';
import { Auditor } from './auditor.ts';
import { faultyModel } from './faulty-model.ts';
import { costs, EXTRACTOR, LAYOUT, type Layout, PARTITIONS, ROUTER, repository, topics } from './fleet.ts';
import { simulatedLibrary } from './simulated-library.ts';
import { noTrouble, type Trouble, troubledBus, troubledStore } from './trouble.ts';

export const SESSION_TIMEOUT_MS = 2_000;
const DRAIN_TIMEOUT_MS = 1_000;
/** Nothing takes longer than this, whatever happens to it. */
const SETTLED_MS = 60_000;

async function openCodecs(
  clock: VirtualClock,
  pools: readonly string[],
): Promise<{ codecs: Codecs; registry: SwitchableRegistry }> {
  const registry = switchableRegistry(memorySchemaRegistry());
  const codecs = createCodecs({ registry, clock });
  await codecs.register(recordTopics({ topics, tenants: [], pools: [...pools] }));
  return { codecs, registry };
}
/** Compiling all schemas takes longer than a whole run: runs that leave the registry alone share them. A dispatch is the same in any pool. */
const shared = await openCodecs(virtualClock(), [...LAYOUT.slots.keys()]);

export interface InstallationOptions {
  seed: number;
  /** From the append of a record to its delivery. */
  deliveryDelayMs: number;
  topology: 'split' | 'fused';
  /** With codecs of its own, on a registry that can be switched off. */
  ownRegistry?: boolean;
  /** Model versions can be published; these, by `family@version`, are refused by every worker, for these reasons. */
  refusals?: ReadonlyMap<string, string>;
  /** That of fleet.ts unless given. */
  layout?: Layout;
  /** Routers keep what they last ran on a disk of their own, which outlives them. */
  disks?: boolean;
  /** Settings of controllers that are wired as in production; without any they are live at once with what is published, and see nothing. */
  controller?: Readonly<Record<string, unknown>>;
}

export type RouterHost = Host<Stage & { router: Router }>;

/** Pools, topics and processes, each process on a host of its own, in virtual time. */
export class Installation {
  readonly clock: VirtualClock = virtualClock();
  readonly random;
  /** What happens to this installation. */
  readonly chance: RandomStream;
  readonly brokerClock = new HostClock(this.clock);
  readonly broker;
  readonly store;
  readonly telemetry = silentTelemetry();
  readonly topics = topics;
  /** Epochs in the order in which routers applied them, by router. */
  readonly epochs = new Map<string, number[]>();
  /** Share of batches that fail for no reason. */
  flakiness = 0;
  /** How many times as long as its profile says a device takes. */
  slowdown: (pool: string, memory: string) => number = () => 1;
  /** Factor on the scores that a pool gives; 1 unless it is here. */
  readonly scoreFactors = new Map<string, number>();
  readonly auditor: Auditor;
  /** By name of the host, whichever life of it. */
  readonly #troubles = new Map<string, Trouble>();
  /** What each router keeps on its disk. */
  readonly #disks = new Map<string, LastKnownGood>();
  #codecs: Codecs = shared.codecs;
  #registry: SwitchableRegistry = shared.registry;
  #client: Connection | undefined;
  #ledger: OutsideLedger | undefined;
  #lives = 0;
  #isBrokerUp = true;
  readonly #hosts: Hosts;
  readonly #options: InstallationOptions;
  readonly #layout: Layout;

  constructor(options: InstallationOptions) {
    this.#options = options;
    this.#layout = options.layout ?? LAYOUT;
    const { slots } = this.#layout;
    this.random = seededRandom(options.seed);
    this.chance = this.random.stream('chance');
    this.broker = memoryBroker({ clock: this.brokerClock, deliveryDelayMs: options.deliveryDelayMs });
    this.store = memoryControlServer({ clock: this.clock });
    this.#hosts = new Hosts({
      clock: this.clock,
      broker: this.broker,
      telemetry: this.telemetry,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      drainTimeoutMs: DRAIN_TIMEOUT_MS,
    });
    this.auditor = new Auditor({
      bus: this.#hosts.connect('auditor'),
      codecs: shared.codecs,
      topics,
      pools: [...slots.keys()],
      groups: [
        { group: `${topics.prefix}.feature-extractor`, topic: topics.ingress() },
        { group: `${topics.prefix}.request-router`, topic: topics.fixed('features') },
        ...[...slots].flatMap(([pool, length]) =>
          Array.from({ length }, (_, slot) => ({
            group: `${topics.prefix}.worker.${pool}.${slot}`,
            topic: topics.dispatch(pool),
            partition: slot,
          })),
        ),
      ],
    });
  }

  get client(): Connection {
    if (this.#client === undefined) throw new Error('the installation is not open');
    return this.#client;
  }

  get ledger(): OutsideLedger {
    if (this.#ledger === undefined) throw new Error('the installation is not open');
    return this.#ledger;
  }

  get registry(): SwitchableRegistry {
    return this.#registry;
  }

  /** Topics, client, books; no stages yet. */
  async open(): Promise<void> {
    if (this.#options.ownRegistry === true) {
      const own = await openCodecs(this.clock, [...this.#layout.slots.keys()]);
      this.#codecs = own.codecs;
      this.#registry = own.registry;
    }
    const bus = this.#hosts.connect('client');
    await this.settle(
      bus.admin.createTopics(
        topicSpecs({
          topics,
          partitions: PARTITIONS,
          replication: 1,
          pools: this.#layout.slots,
          tenants: [],
        }),
      ),
    );
    this.#client = {
      bus,
      codecs: shared.codecs,
      topics,
      clock: new HostClock(this.clock),
      telemetry: this.telemetry,
      newId: () => `id-${this.#lives}`,
      close: () => bus.close(),
    };
    await this.settle(this.auditor.start());
    this.#ledger = await this.settle(openOutsideLedger(this.client));
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

  /** Lets time go on, and holds commits against finished work as it does. */
  async pass(durationMs: number): Promise<void> {
    const untilMs = this.clock.monotonicMs() + durationMs;
    for (let leftMs = durationMs; leftMs > 0; leftMs = untilMs - this.clock.monotonicMs()) {
      await this.clock.advanceBy(Math.min(leftMs, 20 + this.chance.below(200)));
      if (!this.#isBrokerUp) continue;
      const check = await this.settle(this.auditor.commits());
      // By then the auditor has heard of everything that was stored before the commits were looked at, and of nothing else.
      await this.clock.advanceBy(this.#options.deliveryDelayMs);
      check();
    }
  }

  stopBroker(): void {
    this.#isBrokerUp = false;
    this.broker.stop();
  }

  startBroker(): void {
    this.#isBrokerUp = true;
    this.broker.start();
  }

  // Processes

  /** Where extractor and router are fused, one more of those. */
  startExtractor(name = 'extractor'): Host {
    if (this.#options.topology === 'fused') return this.startRouter(name, 1);
    return this.#start(name, (deps) =>
      createFeatureExtractorStage(EXTRACTOR, { ...deps, signals: createSignalExtractor(costs) }),
    );
  }

  startRouter(name = 'router', ackPartition = 0): RouterHost {
    const life = `${name}#${this.#lives + 1}`;
    const { builtIn, fleet } = this.#layout;
    return this.#start(name, async (deps, connectStore) => {
      const router: RequestRouterConfig = {
        ...ROUTER,
        poolsOf: poolsOf(fleet),
        router: life,
        ackPartition,
      };
      const stage =
        this.#options.topology === 'fused'
          ? await createFusedStage(
              { extractor: EXTRACTOR, router },
              { ...deps, signals: createSignalExtractor(costs) },
              builtIn,
            )
          : await createRequestRouterStage(router, deps, builtIn);
      const epochs: number[] = [];
      this.epochs.set(life, epochs);
      const source = new PolicySource({
        store: connectStore(),
        lastKnownGood: this.#options.disks === true ? this.#diskOf(name) : undefined,
        clock: deps.clock,
        random: deps.random.stream(`poll ${name}`),
        telemetry: this.telemetry,
        scope: `policy/${builtIn.ref.name}`,
        member: name,
        digest: digestOf,
        compile: (bytes) => compileChecked(bytes, fleet),
        apply: (policy, canary) => {
          // A canary that begins or lapses swaps at the same epoch.
          if (epochs.at(-1) !== policy.epoch) epochs.push(policy.epoch);
          stage.router.setPolicy(policy, canary);
        },
      });
      await source.start();
      return {
        ...stage,
        close: async () => {
          await source.close();
          await stage.close();
        },
      };
    });
  }

  startWorker(pool: string, slot: number, name = `${pool}-${slot}`): Host {
    const incarnation = `${name} life ${this.#lives + 1}`;
    const { fleet, profile, windowMs } = this.#layout;
    const { accelerator } = poolOf(fleet, pool);
    return this.#start(name, async (deps, connectStore) => {
      const own = growingRepository(repository);
      const { refusals } = this.#options;
      const backend = createSimulatedAccelerator(
        {
          repository: own,
          clock: deps.clock,
          random: seededRandom(this.random.seed + this.#lives),
          slowdown: (memory) => this.slowdown(pool, memory),
        },
        profile,
      );
      const chance = this.random.stream(`flaky ${incarnation}`);
      const faults = {
        isFailing: (): boolean => this.flakiness > 0 && chance.next() < this.flakiness,
        scoreFactor: (): number => this.scoreFactors.get(pool) ?? 1,
      };
      const models = await Promise.all(
        repository.families.flatMap(({ family, versions }) =>
          versions.map(async ({ version }) => faultyModel(await backend.load(family, version), faults)),
        ),
      );
      return createAcceleratorWorkerStage(
        {
          worker: name,
          incarnation,
          pool,
          accelerator,
          host: `host of ${name}`,
          capacityClass: 'dedicated',
          slots: [slot],
          slotsMax: 1,
          batchRequestsMax: 4,
          batchCandidatesMax: 256,
          batchMsMax: 10,
          batchesInFlightMax: 2,
          tries: 3,
          featuresWaitMs: 20,
          overload: { slaMs: 0, order: 'strict' },
          heartbeatMs: 200,
          windowMs,
          ackCoalesceMs: 2,
          unacknowledgedMax: 50,
          deadLetterPayload: 'full',
          build: 'test',
          expectedSpeed: 1,
          versionsMax: 8,
          unloadAfterMs: 60_000,
        },
        {
          ...deps,
          backend,
          models,
          store: connectStore(),
          library: refusals === undefined ? noLibrary() : simulatedLibrary(own, refusals),
          digest: digestOf,
        },
      );
    });
  }

  startController(name = 'controller'): Host {
    const { controller } = this.#options;
    const { fleet } = this.#layout;
    if (controller !== undefined) {
      const { settings } = loadSettings({}, { 'controller.acceptUnsigned': true, ...controller });
      return this.#start(name, (deps, connectStore) =>
        startPolicyController(settings, deps, { fleet, store: connectStore() }),
      );
    }
    return this.#start(name, (deps, connectStore) =>
      createPolicyControllerStage(
        {
          controller: name,
          acceptUnsigned: true,
          reconcileMs: 500,
          tuning: undefined,
          rollout: { ...DEFAULT_ROLLOUT_CONFIG, mode: 'immediate' },
        },
        {
          ...deps,
          store: connectStore(),
          digest: digestOf,
          checkPolicy: (bytes) => compileChecked(bytes, fleet).document,
        },
      ),
    );
  }

  /** One of everything, and a worker per slot. */
  startAll(): void {
    for (const [pool, slots] of this.#layout.slots)
      for (let slot = 0; slot < slots; slot += 1) this.startWorker(pool, slot);
    this.startController();
    this.startRouter();
    this.startExtractor();
  }

  get hosts(): readonly Host[] {
    return this.#hosts.all;
  }

  up(prefix = ''): Host[] {
    return this.#hosts.up(prefix);
  }

  /** Names of routers that do not run the policy that the store names; none while it names none. */
  async routersBehind(): Promise<string[]> {
    const pointer = await this.settle(
      this.store.connect().readPointer(`policy/${this.#layout.builtIn.ref.name}`),
    );
    if (pointer === undefined) return [];
    return this.hosts.flatMap(({ name, state, stage }) => {
      const isBehind =
        state === 'up' &&
        stage !== undefined &&
        'router' in stage &&
        stage.router instanceof Router &&
        stage.router.policy.epoch !== pointer.epoch;
      return isBehind ? [name] : [];
    });
  }

  /** Whether the store names the policy that routers follow. */
  async isPolicyStored(): Promise<boolean> {
    const scope = `policy/${this.#layout.builtIn.ref.name}`;
    return (await this.settle(this.store.connect().readPointer(scope))) !== undefined;
  }

  /** Version of the policy that each router which is up runs, by name. */
  routerVersions(): Map<string, number> {
    const versions = new Map<string, number>();
    for (const { name, state, stage } of this.hosts)
      if (state === 'up' && stage !== undefined && 'router' in stage && stage.router instanceof Router)
        versions.set(name, stage.router.policy.ref.version);
    return versions;
  }

  /** Slots of which a router does not know how many of its dispatches are outstanding, in words. */
  creditsOff(): string[] {
    return this.up().flatMap(({ name, stage }) => {
      if (stage === undefined || !('router' in stage && stage.router instanceof Router)) return [];
      return [...stage.router.fleet.allSlots()]
        .filter(({ outstanding, credits }) => outstanding.size !== credits.outstanding)
        .map(
          (slot) => `${name} counts ${slot.credits.outstanding} of ${slot.outstanding.size} on ${slot.pool}`,
        );
    });
  }

  crash(host: Host): void {
    this.#hosts.crash(host);
  }

  close(host: Host): Promise<void> {
    return this.#hosts.close(host);
  }

  allSettled(): Promise<void> {
    return this.#hosts.allSettled((promise) => this.settle(promise));
  }

  /** What is wrong with the ways of the host of that name; changes are heeded from then on. */
  troubleOf(name: string): Trouble {
    const trouble = this.#troubles.get(name) ?? noTrouble();
    this.#troubles.set(name, trouble);
    return trouble;
  }

  #diskOf(name: string): LastKnownGood {
    const disk = this.#disks.get(name) ?? memoryLastKnownGood();
    this.#disks.set(name, disk);
    return disk;
  }

  #start<S extends Stage>(
    name: string,
    open: (deps: StageDeps, connectStore: () => ControlStore) => Promise<S>,
  ): Host<S> {
    this.#lives += 1;
    const random = seededRandom(this.random.seed + this.#lives);
    const machine = {
      name,
      bootedMs: 1_000 * this.#lives + this.chance.below(1_000_000),
      delays: {
        thereMs: this.chance.below(4),
        backMs: this.chance.below(4),
        commitMs: this.chance.below(2) * this.chance.below(50),
      },
    };
    const trouble = this.troubleOf(name);
    return this.#hosts.start(machine, ({ bus, clock }) =>
      open(
        {
          bus: troubledBus(bus, clock, trouble),
          clock,
          codecs: this.#codecs,
          topics,
          random,
          telemetry: this.telemetry,
          topicDelay: createTopicDelay(),
        },
        () => troubledStore(this.store.connect(), trouble),
      ),
    );
  }
}
