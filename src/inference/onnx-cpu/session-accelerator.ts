import { MillraceError } from '../../core/errors.ts';
import type { Accelerator, AcceleratorCapabilities, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import { createSlabArena, type SlabArena } from '../memory/slab-arena.ts';
import { PackedModel } from '../packed-model.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import { SessionMaking, type SessionMakingOptions, type VersionSessions } from './session-making.ts';
import { type SessionThread, sessionThread } from './session-thread.ts';

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
  /** Starts what computes; a thread of this process where left out. */
  startThread?: (clock: Clock) => SessionThread;
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
  return new SessionAccelerator(capabilities, dependencies, options);
}

class SessionAccelerator implements Accelerator {
  readonly capabilities: AcceleratorCapabilities;
  readonly failed: Promise<string>;
  readonly #dependencies: OnnxCpuDependencies;
  readonly #options: OnnxCpuOptions;
  readonly #resolveFailed: (reason: string) => void;
  readonly #shared: SessionThread;
  /** All that compute: the shared one, and one for each version that came beside others. */
  readonly #threads = new Set<SessionThread>();
  readonly #arena: SlabArena;
  readonly #models = new Set<PackedModel>();
  readonly #loading = new Set<Promise<unknown>>();
  #closed = false;

  constructor(
    capabilities: AcceleratorCapabilities,
    dependencies: OnnxCpuDependencies,
    options: OnnxCpuOptions,
  ) {
    const failed = Promise.withResolvers<string>();
    this.capabilities = capabilities;
    this.failed = failed.promise;
    this.#resolveFailed = failed.resolve;
    this.#dependencies = dependencies;
    this.#options = options;
    this.#arena = createSlabArena({ keptBytesMax: options.keptBytesMax ?? KEPT_BYTES_MAX });
    this.#shared = this.#startThread();
    void this.#shared.died.then(failed.resolve);
  }

  load(
    family: string,
    version: string,
    { besideOthers = false }: { besideOthers?: boolean } = {},
  ): Promise<LoadedModel> {
    const loading = this.#load(family, version, besideOthers);
    this.#loading.add(loading);
    return loading.finally(() => this.#loading.delete(loading));
  }

  async close(): Promise<void> {
    this.#closed = true;
    // A thread that is ended inside of the device's driver takes the process along.
    if (this.#options.provider === 'webgpu') await Promise.allSettled(this.#loading);
    await Promise.all([...this.#models].map((model) => model.unload()));
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  async #load(family: string, version: string, besideOthers: boolean): Promise<LoadedModel> {
    const wanted = this.#dependencies.repository.version(family, version);
    const tables = await this.#dependencies.repository.itemTables(wanted);
    // The thread that it would start now would be one that nobody ends.
    if (this.#closed) throw new MillraceError('CLOSED', 'the accelerator is closed');
    const thread = besideOthers ? this.#startThread() : this.#shared;
    const sessions = await this.#sessionsIn(thread, wanted);
    void thread.died.then(this.#resolveFailed);
    const model = new PackedModel({
      version: wanted,
      tables,
      capabilities: this.capabilities,
      runGraph: sessions.run,
      refusedKernels: sessions.refusedKernels,
      arena: this.#arena,
      onUnload: async () => {
        await sessions.release();
        this.#models.delete(model);
        await this.#leave(thread);
      },
    });
    this.#models.add(model);
    return model;
  }

  async #sessionsIn(thread: SessionThread, wanted: ModelVersion): Promise<VersionSessions> {
    const making = new SessionMaking(thread, this.#dependencies.repository, wanted, this.#options);
    try {
      return await making.ofKernels(this.capabilities.kernels);
    } catch (error) {
      await this.#leave(thread);
      throw error;
    }
  }

  #startThread(): SessionThread {
    const { clock, startThread = sessionThread } = this.#dependencies;
    const thread = startThread(clock);
    this.#threads.add(thread);
    return thread;
  }

  async #leave(thread: SessionThread): Promise<void> {
    if (thread === this.#shared) return;
    this.#threads.delete(thread);
    await thread.close();
  }
}
