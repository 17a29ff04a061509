import { memoryBroker } from '../../src/adapters/memory/bus.ts';
import { memoryControlServer } from '../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { memorySchemaRegistry } from '../../src/adapters/registry/memory.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { type Codecs, createCodecs } from '../../src/contracts/codec.ts';
import { recordTopics, topicSpecs } from '../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { createSignalExtractor } from '../../src/core/signals/extract.ts';
import { growingRepository } from '../../src/inference/repository/growing-repository.ts';
import { createSimulatedAccelerator } from '../../src/inference/simulated/accelerator.ts';
import type { RandomStream } from '../../src/ports/random.ts';
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
import { compileChecked, digestOf, poolOf, poolsOf } from '../../src/wiring/policy-files.ts';
import { type SwitchableRegistry, switchableRegistry } from '../integration/switchable-registry.ts';
import { noLibrary } from '../unit/stages/accelerator-worker/library.fixture.ts';
import { Auditor } from './auditor.ts';
import { faultyModel } from './faulty-model.ts';
import { costs, EXTRACTOR, LAYOUT, type Layout, PARTITIONS, ROUTER, repository, topics } from './fleet.ts';
import { type Host, HostClock } from './host.ts';
import { networkedBus } from './network.ts';
import { simulatedLibrary } from './simulated-library.ts';

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
  readonly hosts: Host[] = [];
  /** Epochs in the order in which routers applied them, by router. */
  readonly epochs = new Map<string, number[]>();
  /** Share of batches that fail for no reason. */
  flakiness = 0;
  /** How many times as long as its profile says a device takes. */
  slowdown: (pool: string, memory: string) => number = () => 1;
  /** Factor on the scores that a pool gives; 1 unless it is here. */
  readonly scoreFactors = new Map<string, number>();
  readonly auditor: Auditor;
  #codecs: Codecs = shared.codecs;
  #registry: SwitchableRegistry = shared.registry;
  #client: Connection | undefined;
  #ledger: OutsideLedger | undefined;
  #lives = 0;
  #isBrokerUp = true;
  /** What was begun and has not ended, with the process that it is about. */
  readonly #begun = new Map<Promise<void>, Host>();
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
    this.auditor = new Auditor({
      bus: this.#connect('auditor'),
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
    const bus = this.#connect('client');
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
    return this.#start(name, async (deps) => {
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
        store: this.store.connect(),
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
    return this.#start(name, async (deps) => {
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
          store: this.store.connect(),
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
      return this.#start(name, (deps) =>
        startPolicyController(settings, deps, { fleet, store: this.store.connect() }),
      );
    }
    return this.#start(name, (deps) =>
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
          store: this.store.connect(),
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

  up(prefix = ''): Host[] {
    return this.hosts.filter(({ name, state }) => state === 'up' && name.startsWith(prefix));
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

  /** As kill -9, or the plug. */
  crash(host: Host): void {
    host.state = 'crashed';
    host.bus.crash();
    host.clock.die();
  }

  /** As SIGTERM; resolves when the process has ended. */
  close(host: Host): Promise<void> {
    host.state = 'closed';
    return this.#begin(host, async () => {
      await host.stage?.close();
      await host.bus.close();
    });
  }

  /** Everything that was started or closed has got there; what a crashed process began never will. */
  async allSettled(): Promise<void> {
    for (;;) {
      const open = [...this.#begun]
        .filter(([, host]) => host.state !== 'crashed')
        .map(([promise]) => promise);
      if (open.length === 0) return;
      await this.settle(Promise.all(open));
    }
  }

  #start<S extends Stage>(name: string, open: (deps: StageDeps) => Promise<S>): Host<S> {
    this.#lives += 1;
    const clock = new HostClock(this.clock, 1_000 * this.#lives + this.chance.below(1_000_000));
    const host: Host<S> = { name, clock, bus: this.#connect(name), stage: undefined, state: 'up' };
    this.hosts.push(host);
    const delays = {
      thereMs: this.chance.below(4),
      backMs: this.chance.below(4),
      commitMs: this.chance.below(2) * this.chance.below(50),
    };
    const deps: StageDeps = {
      bus: networkedBus(host.bus, clock, delays),
      codecs: this.#codecs,
      topics,
      clock,
      random: seededRandom(this.random.seed + this.#lives),
      telemetry: this.telemetry,
      topicDelay: createTopicDelay(),
    };
    void this.#begin(host, async () => {
      host.stage = await open(deps);
    });
    return host;
  }

  #begin(host: Host, step: () => Promise<void>): Promise<void> {
    const promise = step();
    this.#begun.set(promise, host);
    const forget = (): void => {
      this.#begun.delete(promise);
    };
    promise.then(forget, forget);
    return promise;
  }

  #connect(clientId: string) {
    return this.broker.connect({
      clientId,
      drainTimeoutMs: DRAIN_TIMEOUT_MS,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      telemetry: this.telemetry,
    });
  }
}
