import { MillraceError } from '../../core/errors.ts';
import type { Accelerator, AcceleratorCapabilities, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import { checkGraph } from '../check-graph.ts';
import { checkGolden } from '../golden-check.ts';
import { createSlabArena } from '../memory/slab-arena.ts';
import { PackedModel } from '../packed-model.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import { type SessionThread, sessionThread } from './session-thread.ts';

export interface OnnxCpuOptions {
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

const CAPABILITIES: AcceleratorCapabilities = {
  backend: 'onnx-cpu',
  simulated: false,
  kernels: ['dense'],
  memories: ['host'],
  datatypes: ['FP32', 'INT64'],
};

/**
 * ONNX Runtime on the CPU, in one thread of its own: batches run one after another in the order of the calls, and the next
 * one is checked and packed while one runs. A version is accepted only when its digest, its inputs and outputs, and its golden cases hold.
 * Making a session occupies its thread for as long as the graph is large, so a version that comes beside others gets another thread.
 */
export function createOnnxCpuAccelerator(
  dependencies: OnnxCpuDependencies,
  options: OnnxCpuOptions = {},
): Accelerator {
  const { repository, clock } = dependencies;
  const shared = sessionThread(clock);
  const failed = Promise.withResolvers<string>();
  void shared.died.then(failed.resolve);
  const arena = createSlabArena({ keptBytesMax: options.keptBytesMax ?? KEPT_BYTES_MAX });
  const models = new Set<PackedModel>();
  return {
    capabilities: CAPABILITIES,
    failed: failed.promise,
    async load(family, version, { besideOthers = false } = {}): Promise<LoadedModel> {
      const wanted = repository.version(family, version);
      const tables = await repository.itemTables(wanted);
      const thread = besideOthers ? sessionThread(clock) : shared;
      const leave = async (): Promise<void> => {
        if (thread !== shared) await thread.close();
      };
      const session = await createOrDie(thread, repository, wanted, options).catch(async (error: unknown) => {
        await leave();
        throw error;
      });
      void thread.died.then(failed.resolve);
      const model = new PackedModel({
        version: wanted,
        tables,
        capabilities: CAPABILITIES,
        runGraph: (call) => thread.run({ kind: 'run', session, ...call }),
        arena,
        onUnload: async () => {
          await thread.release(session);
          models.delete(model);
          await leave();
        },
      });
      models.add(model);
      return model;
    },
    async close() {
      await Promise.all([...models].map((model) => model.unload()));
      await shared.close();
    },
  };
}

/** A graph that kills its thread is refused like any other. */
function createOrDie(
  thread: SessionThread,
  repository: ModelRepository,
  version: ModelVersion,
  options: OnnxCpuOptions,
): Promise<number> {
  const died = thread.died.then((reason) => Promise.reject(refused(version, reason)));
  return Promise.race([createSession(thread, repository, version, options), died]);
}

/** @returns the session's number in the thread */
async function createSession(
  thread: SessionThread,
  repository: ModelRepository,
  version: ModelVersion,
  options: OnnxCpuOptions,
): Promise<number> {
  const [graph, golden] = await Promise.all([repository.readGraph(version), repository.readGolden(version)]);
  const answer = await thread.create({
    kind: 'create',
    graph,
    options: {
      intraOpThreads: options.intraOpThreads ?? 1,
      executionMode: options.executionMode ?? 'sequential',
    },
  });
  if (answer.kind === 'failed') throw refused(version, answer.message);
  const { session, signature } = answer;
  try {
    checkGraph(version, signature);
    await checkGolden(version, golden, (call) => thread.run({ kind: 'run', session, ...call }), refused);
  } catch (error) {
    await thread.release(session);
    throw error;
  }
  return session;
}

function refused(version: ModelVersion, message: string): MillraceError {
  return new MillraceError(
    'INVALID_MODEL',
    `${version.family}/${version.version}: ONNX Runtime refuses it: ${message}`,
  );
}
