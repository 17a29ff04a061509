import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { packageVersion } from '../config/package-version.ts';
import type { Settings } from '../config/settings.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { poolOf } from '../core/policy/fleet-pools.ts';
import { expectedSpeed } from '../inference/expected-speed.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { Accelerator } from '../ports/accelerator.ts';
import type { ControlStore } from '../ports/control-store.ts';
import type { FeatureSource } from '../ports/feature-source.ts';
import type { ModelLibrary } from '../ports/model-library.ts';
import { createAcceleratorWorkerStage } from '../stages/accelerator-worker/stage.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import type { FolderModels } from './backends.ts';
import { digestOf } from './policy-files.ts';
import { storeTrust } from './trusted-keys.ts';

export async function startAcceleratorWorker(
  settings: Settings,
  deps: StageDeps,
  surroundings: {
    fleet: Fleet;
    backend: Accelerator;
    models: FolderModels;
    repository: ModelRepository;
    store: ControlStore;
    library: ModelLibrary;
    features?: FeatureSource | undefined;
  },
): Promise<Stage> {
  const { worker } = settings;
  const { repository } = surroundings;
  const { loaded, unloaded } = surroundings.models;
  const pool = poolOf(surroundings.fleet, worker.pool);
  return createAcceleratorWorkerStage(
    {
      worker: worker.name === '' ? `${worker.pool}-${randomUUID().slice(0, 8)}` : worker.name,
      incarnation: randomUUID(),
      pool: pool.pool,
      accelerator: pool.accelerator,
      host: hostname(),
      capacityClass: pool.capacityClass,
      slots: worker.shareSlots ? 'shared' : worker.slots,
      slotsMax: worker.slotsMax,
      batchRequestsMax: worker.batchRequestsMax,
      batchCandidatesMax: worker.batchCandidatesMax,
      batchMsMax: worker.batchMsMax,
      batchesInFlightMax: worker.batchesInFlightMax,
      featuresWaitMs: settings.features.waitMs,
      overload: settings.overload,
      tries: settings.tries,
      heartbeatMs: worker.heartbeatMs,
      windowMs: settings.windowMs,
      ackCoalesceMs: worker.ackCoalesceMs,
      unacknowledgedMax: settings.unacknowledgedMax,
      deadLetterPayload: settings.deadLetterPayload,
      versionsMax: worker.modelVersionsMax,
      unloadAfterMs: worker.modelUnloadAfterMs,
      build: worker.build === '' ? packageVersion() : worker.build,
      expectedSpeed: expectedSpeed(loaded, repository),
    },
    {
      ...deps,
      backend: surroundings.backend,
      models: loaded,
      unloaded,
      store: surroundings.store,
      library: surroundings.library,
      features: surroundings.features,
      trust: storeTrust(settings, 'model versions', deps.telemetry.logger),
      digest: digestOf,
    },
  );
}
