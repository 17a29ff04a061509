import type { Accelerator, AcceleratorCapabilities, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import { createSlabArena } from '../memory/slab-arena.ts';
import { PackedModel } from '../packed-model.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import { SessionMaking, type SessionMakingOptions } from './session-making.ts';
import { sessionThread } from './session-thread.ts';

export interface OnnxCpuOptions extends Pick<SessionMakingOptions, 'provider' | 'toleranceMin'> {
  /** Threads that one operator may use. */
  intraOpThreads?: number;
  /** `parallel` runs independent branches of a graph side by side, on as many threads. */
  executionMode?: 'sequential' | 'parallel';
  /** Batch memory kept for reuse. */
  keptBytesMax?: number;
}

export interface OnnxCpuDependencies {
  repository: ModelRepository;
  clock: Clock;
}

const KEPT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * ONNX Runtime on the CPU, in one thread of its own: batches run one after another in the order of the calls, and the next
 * one is checked and packed while one runs. A version is accepted only when its digest, its inputs and outputs, and its golden cases hold.
 * Making a session occupies its thread for as long as the graph is large, so a version that comes beside others gets another thread.
 * A backend that has the kernel `sparse` has it for the versions whose candidates' inputs go straight into products, and for others the reason.
 */
export function createSessionAccelerator(
  capabilities: AcceleratorCapabilities,
  dependencies: OnnxCpuDependencies,
  options: OnnxCpuOptions = {},
): Accelerator {
  const { repository, clock } = dependencies;
  const shared = sessionThread(clock);
  const failed = Promise.withResolvers<string>();
  void shared.died.then(failed.resolve);
  const arena = createSlabArena({ keptBytesMax: options.keptBytesMax ?? KEPT_BYTES_MAX });
  const models = new Set<PackedModel>();
  const making = new Set<Promise<unknown>>();
  return {
    capabilities,
    failed: failed.promise,
    async load(family, version, { besideOthers = false } = {}): Promise<LoadedModel> {
      const wanted = repository.version(family, version);
      const tables = await repository.itemTables(wanted);
      const thread = besideOthers ? sessionThread(clock) : shared;
      const leave = async (): Promise<void> => {
        if (thread !== shared) await thread.close();
      };
      const sessionsOf = new SessionMaking(thread, repository, wanted, options);
      const made = sessionsOf.ofKernels(capabilities.kernels);
      making.add(made);
      const sessions = await made
        .catch(async (error: unknown) => {
          await leave();
          throw error;
        })
        .finally(() => making.delete(made));
      void thread.died.then(failed.resolve);
      const model = new PackedModel({
        version: wanted,
        tables,
        capabilities,
        runGraph: sessions.run,
        refusedKernels: sessions.refusedKernels,
        arena,
        onUnload: async () => {
          await sessions.release();
          models.delete(model);
          await leave();
        },
      });
      models.add(model);
      return model;
    },
    async close() {
      // A thread that is ended inside of the device's driver takes the process along.
      if (options.provider === 'webgpu') await Promise.allSettled(making);
      await Promise.all([...models].map((model) => model.unload()));
      await shared.close();
    },
  };
}
