import { carriedRequest } from '../../contracts/headers.ts';
import { type Dispatch, makePoolStatus } from '../../contracts/records.ts';
import { versionName } from '../../core/model/published-model.ts';
import type { Accelerator, LoadedModel } from '../../ports/accelerator.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import type { FeatureSource } from '../../ports/feature-source.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import { runStage } from '../run-stage.ts';
import type { SignatureTrust } from '../signature-trust.ts';
import { openDeadLetters, openResults, produceAside, type Stage, type StageDeps } from '../stage.ts';
import { AckSender } from './ack-sender.ts';
import { FixedSlots } from './fixed-slots.ts';
import { FolderVersions, type UnloadedVersion } from './folder-versions.ts';
import { HeldSlots } from './held-slots.ts';
import { LoadedVersions } from './loaded-versions.ts';
import { takingTurns } from './loading-turns.ts';
import { PublishedVersions, type PublishedVersionsConfig } from './published-versions.ts';
import { SlotSharing } from './slot-sharing.ts';
import { WorkerWindows } from './windows.ts';
import { Worker, type WorkerConfig } from './worker.ts';

export interface AcceleratorWorkerConfig extends Omit<WorkerConfig, 'simulated'>, PublishedVersionsConfig {
  /** Changes with every start. */
  incarnation: string;
  accelerator: string;
  /** The machine: its workers load versions one after another. */
  host: string;
  capacityClass: 'dedicated' | 'opportunistic';
  /** Partitions of the pool's dispatch topic to own; `shared`: an even share of them. */
  slots: readonly number[] | 'shared';
  /** Most of them where they are shared. */
  slotsMax: number;
  heartbeatMs: number;
  windowMs: number;
  ackCoalesceMs: number;
  unacknowledgedMax: number;
  deadLetterPayload: 'full' | 'hash';
  /** Version of this code, for whoever must know that it changed. */
  build: string;
}

export interface AcceleratorWorkerDeps extends StageDeps {
  backend: Accelerator;
  /** Versions of the model folder, loaded. */
  models: readonly LoadedModel[];
  /** Those that could not be loaded; they are tried again for as long as that can help. */
  unloaded?: readonly UnloadedVersion[];
  /** Where published versions are learned of. */
  store: ControlStore;
  library: ModelLibrary;
  /** Where rows of inputs are read that models name a source for. */
  features?: FeatureSource | undefined;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  /** Whom published versions are taken from; from anybody where it is left out. */
  trust?: SignatureTrust | undefined;
}

/** dispatch → scored-results: owns slots, queues, batches, runs the model, reports. */
export async function createAcceleratorWorkerStage(
  config: AcceleratorWorkerConfig,
  deps: AcceleratorWorkerDeps,
): Promise<Stage & { worker: Worker }> {
  const results = await openResults(deps);
  const loaded = new LoadedVersions(deps.models);
  const windows = new WorkerWindows(config, deps.clock, deps.random.stream(`${config.worker}.scores`));
  const acks: AckSender = new AckSender({
    worker: config.worker,
    incarnation: config.incarnation,
    pool: config.pool,
    topic: deps.topics.fixed('acks'),
    coalesceMs: config.ackCoalesceMs,
    codec: deps.codecs.for('DispatchAck'),
    clock: deps.clock,
    load: () => worker.load(),
    produce: (topic, make) => void produceAside(deps, topic, make),
  });
  const worker: Worker = new Worker(
    { ...config, simulated: deps.backend.capabilities.simulated },
    {
      clock: deps.clock,
      codecs: deps.codecs,
      telemetry: deps.telemetry,
      requestCodec: deps.codecs.for('ScoreRequest'),
      results,
      acks,
      windows,
      features: deps.features,
      modelFor: (family, version, variant) => loaded.modelFor(family, version, variant),
    },
  );
  const backend = takingTurns(deps.backend, {
    store: deps.store,
    clock: deps.clock,
    host: config.host,
    worker: config.worker,
  });
  const published: PublishedVersions = new PublishedVersions(config, {
    ...deps,
    backend,
    random: deps.random.stream(`${config.worker}.models`),
    loaded,
    inUse: (model) => worker.isUsing(model),
    onChange: () => heartbeat.beat(),
  });
  const folder: FolderVersions = new FolderVersions(deps.unloaded ?? [], {
    ...deps,
    backend,
    random: deps.random.stream(`${config.worker}.folder`),
    loaded,
    onLoaded: () => heartbeat.beat(),
  });
  const topic = deps.topics.dispatch(config.pool);
  const deadLetters = await openDeadLetters<Dispatch>(deps, [topic], {
    stage: 'accelerator-worker',
    results,
    payload: config.deadLetterPayload,
    requestOf: (dispatch) => dispatch,
    requestIn: carriedRequest,
  });
  const slots: HeldSlots = new HeldSlots((slot) =>
    runStage<Dispatch>(deps, {
      name: 'accelerator-worker',
      subscription: {
        group: `${deps.topics.prefix}.worker.${config.pool}.${slot}`,
        topics: [topic],
        startAt: 'earliest',
        slots: [slot],
        unacknowledgedMax: config.unacknowledgedMax,
      },
      codec: deps.codecs.for('Dispatch'),
      tries: config.tries,
      handle: (delivery) => worker.handle(delivery),
      // Routers take acknowledgements of a slot from whom they know to hold it.
      onAssigned: heartbeat.beat,
      abandon: (gone) => worker.abandon(gone),
      deadLetters,
    }),
  );
  const heartbeat = createHeartbeat(config, deps, { worker, loaded, published, slots });
  folder.start();
  // Whoever takes up a slot finds requests there that name versions.
  await published.start();
  const taking = await takeSlots(config, deps, slots, {
    canServe: () => !loaded.isEmpty,
    onLeaving: heartbeat.beat,
  });
  const publishWindows = createWindowPublisher(config, deps, windows, worker);
  const cancels = [
    deps.clock.every(config.heartbeatMs, heartbeat.beat),
    deps.clock.every(config.windowMs, publishWindows),
  ];
  heartbeat.beat();
  return {
    name: 'accelerator-worker',
    worker,
    unready: () => withoutModel(loaded, folder, published) ?? slots.unready(),
    inFlight: () => slots.inFlight(),
    async close() {
      heartbeat.leaving();
      folder.close();
      await Promise.all([taking.close(), slots.close(), published.close()]);
      for (const cancel of cancels) cancel();
      acks.flush();
      publishWindows();
      heartbeat.leave();
    },
  };
}

async function takeSlots(
  config: AcceleratorWorkerConfig,
  deps: StageDeps,
  held: HeldSlots,
  how: { canServe: () => boolean; onLeaving: () => void },
): Promise<SlotSharing | FixedSlots> {
  const taking =
    config.slots === 'shared'
      ? new SlotSharing(config, deps, held, how)
      : new FixedSlots(config.slots, config, { ...deps, ...how, held });
  await taking.start();
  return taking;
}

/** Why there is nothing that this worker could run; undefined where there is. */
function withoutModel(
  loaded: LoadedVersions,
  folder: FolderVersions,
  published: PublishedVersions,
): string | undefined {
  if (!loaded.isEmpty) return undefined;
  const failed = published.statuses().filter(({ status }) => status === 'FAILED');
  const reasons = [
    ...folder.reasons(),
    ...failed.map((version) => `${versionName(version)}: ${version.reason}`),
  ];
  const [first = 'the model folder has none that could be, and no published one is ready', ...more] = reasons;
  return `no model version is loaded: ${first}${more.length === 0 ? '' : ` (and ${more.length} more)`}`;
}

function createHeartbeat(
  config: AcceleratorWorkerConfig,
  deps: AcceleratorWorkerDeps,
  {
    worker,
    loaded,
    published,
    slots,
  }: { worker: Worker; loaded: LoadedVersions; published: PublishedVersions; slots: HeldSlots },
) {
  const codec = deps.codecs.for('PoolStatus');
  const topic = deps.topics.fixed('pool-status');
  const key = Buffer.from(config.worker);
  const { capabilities } = deps.backend;
  let sequence = 0;
  let leaving = false;
  let busyMs = 0;
  let beatMs = deps.clock.monotonicMs();
  /** While one is on its way the next waits for it: with the broker away they would pile up, and be stale when it is back. */
  let state: 'idle' | 'storing' | 'again' = 'idle';
  const beat = (): void => {
    if (state !== 'idle') {
      state = 'again';
      return;
    }
    const load = worker.load();
    const overload = worker.overload();
    const nowMs = deps.clock.monotonicMs();
    const utilisation = nowMs > beatMs ? Math.min(1, (load.busyMs - busyMs) / (nowMs - beatMs)) : 0;
    busyMs = load.busyMs;
    beatMs = nowMs;
    sequence += 1;
    const status = makePoolStatus({
      pool: config.pool,
      capacityClass: config.capacityClass === 'dedicated' ? 'DEDICATED' : 'OPPORTUNISTIC',
      worker: config.worker,
      incarnation: config.incarnation,
      sequence,
      accelerator: config.accelerator,
      backend: capabilities.backend,
      simulated: capabilities.simulated,
      slots: leaving ? [] : slots.owned(),
      kernels: [...capabilities.kernels],
      memories: [...capabilities.memories],
      models: loaded.folder.map((model) => ({
        family: model.family,
        version: model.version,
        variant: model.variant === 'enhanced' ? 'ENHANCED' : 'BASELINE',
      })),
      published: published.statuses(),
      catalogueEpoch: published.epoch,
      speed: load.speed,
      batchRequests: load.batchRequests,
      queuedPredictedMs: load.queuedPredictedMs,
      utilisation,
      sheddingLevel: worker.takeSheddingLevel(),
      saturated: overload !== undefined && (overload.isSaturated || overload.isBaselineShed),
      build: config.build,
    });
    state = 'storing';
    void produceAside(deps, topic, () => ({
      partition: 0,
      key,
      value: codec.encode(status),
      headers: codec.headers,
    })).then(() => {
      const isWanted = state === 'again';
      state = 'idle';
      if (isWanted) beat();
    });
  };
  return {
    beat,
    /** Routers stop sending before the slots are let go. */
    leaving(): void {
      leaving = true;
      beat();
    },
    /** Not waited for: a broker that is away must not hold up who leaves. What was produced goes out before the bus closes. */
    leave: () => void produceAside(deps, topic, () => ({ partition: 0, key, value: null })),
  };
}

function createWindowPublisher(
  config: AcceleratorWorkerConfig,
  deps: AcceleratorWorkerDeps,
  windows: WorkerWindows,
  worker: Worker,
): () => void {
  const codec = deps.codecs.for('WorkerWindow');
  const topic = deps.topics.fixed('latency-metrics');
  const results = deps.telemetry.counter({
    name: 'millrace_results_total',
    help: 'Requests ended by workers, by pool and outcome.',
    labels: ['pool', 'outcome'],
  });
  const queued = deps.telemetry.gauge({
    name: 'millrace_worker_queued_requests',
    help: 'Requests in the queue of the worker.',
    labels: ['pool'],
  });
  const { pool } = config;
  let storing = 0;
  return () => {
    queued.set(worker.load().queued, { pool });
    worker.publishCosts();
    // While the broker is away the window stays open, so that windows do not pile up.
    if (storing > 0) return;
    for (const window of windows.take()) {
      for (const [outcome, count] of Object.entries(window.outcomes))
        results.add(count, { pool, outcome: outcome.toLowerCase() });
      storing += 1;
      void produceAside(deps, topic, () => ({
        partition: 0,
        key: Buffer.from(config.worker),
        value: codec.encode(window),
        headers: codec.headers,
      })).then(() => {
        storing -= 1;
      });
    }
  };
}
