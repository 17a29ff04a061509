import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { withCascades } from '../inference/cascade/cascade-accelerator.ts';
import { createImmediateAccelerator } from '../inference/immediate.ts';
import { modelLibrary } from '../inference/model-library.ts';
import { createOnnxCpuAccelerator } from '../inference/onnx-cpu/accelerator.ts';
import { createOnnxWebgpuAccelerator } from '../inference/onnx-webgpu/accelerator.ts';
import { createOpenInferenceAccelerator } from '../inference/open-inference/accelerator.ts';
import type { GrowingRepository } from '../inference/repository/growing-repository.ts';
import { type ModelRepository, openRepository } from '../inference/repository/open-repository.ts';
import { createSimulatedAccelerator } from '../inference/simulated/accelerator.ts';
import { serviceProfile } from '../inference/simulated/profiles.ts';
import { createSparseCpuAccelerator } from '../inference/sparse-cpu/accelerator.ts';
import type { Accelerator, LoadedModel } from '../ports/accelerator.ts';
import type { Clock } from '../ports/clock.ts';
import type { ModelLibrary } from '../ports/model-library.ts';
import type { RandomSource } from '../ports/random.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { UnloadedVersion } from '../stages/accelerator-worker/folder-versions.ts';
import { tellRefusedKernels } from '../stages/accelerator-worker/refused-kernels.ts';
import { canPass } from '../stages/accelerator-worker/try-again.ts';
import { followItemTables } from './item-tables.ts';
import { anyModelSource } from './model-source.ts';

export async function openModels(settings: Settings, telemetry: Telemetry): Promise<ModelRepository> {
  const repository = await openRepository(packaged(settings.models, 'models', 'repository'));
  for (const { family, version, error } of repository.refused) {
    telemetry.logger.error({ family, version, reason: error.message }, 'a model version was refused');
  }
  return repository;
}

export interface BackendDeps {
  repository: ModelRepository;
  clock: Clock;
  random: RandomSource;
}

/** The backend that the settings name; `accelerator` picks the profile of a simulated one. */
export function createBackend(settings: Settings, accelerator: string, deps: BackendDeps): Accelerator {
  return withCascades(bareBackend(settings, accelerator, deps), deps.repository);
}

function bareBackend(settings: Settings, accelerator: string, deps: BackendDeps): Accelerator {
  const { backend, intraOpThreads, simulatedSlowdown, simulatedSlowMemory: slow } = settings.worker;
  const slowdown = (memory: string): number => (slow === '' || slow === memory ? simulatedSlowdown : 1);
  switch (backend) {
    case 'onnx-cpu':
      return createOnnxCpuAccelerator(deps, { intraOpThreads });
    case 'sparse-cpu':
      return createSparseCpuAccelerator(deps, { intraOpThreads });
    case 'onnx-webgpu':
      return createOnnxWebgpuAccelerator(deps);
    case 'open-inference':
      return createOpenInferenceAccelerator(deps, {
        ...settings.openInference,
        protoFile: packaged('', 'schemas', 'open-inference.proto'),
      });
    case 'immediate':
      return createImmediateAccelerator(deps);
    case 'simulated':
      return createSimulatedAccelerator(
        { ...deps, slowdown, inner: createOnnxCpuAccelerator(deps, { intraOpThreads }) },
        serviceProfile(accelerator),
      );
    default:
      return backend satisfies never;
  }
}

/** Versions of the model folder after each was tried once. */
export interface FolderModels {
  loaded: readonly LoadedModel[];
  /** With the reason; a worker tries again what may pass. */
  unloaded: readonly UnloadedVersion[];
}

/** Loads every version of every family that the backend accepts; what it refuses is logged with its reason. */
export async function loadModels(
  backend: Accelerator,
  repository: ModelRepository,
  telemetry: Telemetry,
): Promise<FolderModels> {
  const loaded: LoadedModel[] = [];
  const unloaded: UnloadedVersion[] = [];
  for (const { family, versions } of repository.families) {
    for (const { version } of versions) {
      try {
        const model = await backend.load(family, version);
        loaded.push(model);
        tellRefusedKernels(model, telemetry.logger);
      } catch (error) {
        unloaded.push({ family, version, error });
        telemetry.logger.error(
          { family, version, reason: String(error), triedAgain: canPass(error) },
          'a model version could not be loaded',
        );
      }
    }
  }
  return { loaded, unloaded };
}

/** Brings published versions, and other item tables of the model folder, to the accelerators of this process. */
export interface OpenLibrary {
  library: ModelLibrary;
  /** Removes what only this process has. */
  close(): void;
}

export function openLibrary(
  { worker, s3 }: Settings,
  { repository, clock, telemetry }: { repository: GrowingRepository; clock: Clock; telemetry: Telemetry },
): OpenLibrary {
  const own = worker.modelCache === '' ? mkdtempSync(join(tmpdir(), 'millrace-models-')) : undefined;
  const stopLooking = followItemTables(repository, worker.itemTablesLookMs, { clock, telemetry });
  const library = modelLibrary({
    folder: own ?? worker.modelCache,
    source: anyModelSource({ s3 }, clock),
    bytesMax: worker.modelBytesMax,
    fetchTimeoutMs: worker.modelFetchTimeoutMs,
    repository,
    clock,
    logger: telemetry.logger,
  });
  // In a folder of its own nobody left anything, and nobody will look for it.
  const forgetful = { keepCatalogue: async () => undefined, keptCatalogue: async () => undefined };
  return {
    library: own === undefined ? library : { ...library, ...forgetful },
    close() {
      stopLooking();
      if (own !== undefined) rmSync(own, { recursive: true, force: true });
    },
  };
}
