import { MillraceError } from '../../core/errors.ts';
import type { Accelerator, AcceleratorCapabilities, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import { checkGraph } from '../check-graph.ts';
import { checkGolden } from '../golden-check.ts';
import type { RunGraph } from '../graph-call.ts';
import { createSlabArena } from '../memory/slab-arena.ts';
import { PackedModel } from '../packed-model.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import type { ServedModel } from './protocol-client.ts';
import { OpenInferenceServer, type ServerOptions } from './server.ts';
import type { TensorForm } from './tensors.ts';

export interface OpenInferenceOptions extends ServerOptions {
  /** The server's names of a version; `{family}` and `{version}` stand for ours. No version is named where empty. */
  modelName: string;
  modelVersion: string;
  /** What the device behind the server can run, and its memory domains: no server says that. */
  kernels: readonly string[];
  memories: readonly string[];
}

export interface OpenInferenceDependencies {
  repository: ModelRepository;
  clock: Clock;
}

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Shorter than anybody waits before a version is tried again. */
const MOMENT_MS = 250;

/**
 * Models that a server of the Open Inference Protocol computes. Batches are made here, across requests: the server must not make any of its own.
 * A version is accepted only when its golden cases hold on the server; their first answer also shows whether it takes tensors as bytes.
 */
export function createOpenInferenceAccelerator(
  { repository, clock }: OpenInferenceDependencies,
  options: OpenInferenceOptions,
): Accelerator {
  const server = new OpenInferenceServer(options, clock);
  const ready = waitedForOnce(() => server.ready(), clock);
  const arena = createSlabArena({ keptBytesMax: KEPT_BYTES_MAX });
  const capabilities: AcceleratorCapabilities = {
    backend: 'open-inference',
    simulated: false,
    kernels: options.kernels,
    memories: options.memories,
    datatypes: ['FP32', 'INT64'],
  };
  return {
    capabilities,
    // Where the server is gone a new process here would not help.
    failed: new Promise(() => undefined),
    async load(family, version): Promise<LoadedModel> {
      const wanted = repository.version(family, version);
      const served = servedModel(options, wanted);
      await checkServed(server, ready, served, wanted);
      const golden = await repository.readGolden(wanted);
      const runIn =
        (form: TensorForm): RunGraph =>
        (call) =>
          server.infer(served, form, call);
      const form = await formOf(runIn, (run) => checkGolden(wanted, golden, run, unavailable));
      return new PackedModel({
        version: wanted,
        tables: await repository.itemTables(wanted),
        capabilities,
        runGraph: runIn(form),
        arena,
        onUnload: async () => {},
      });
    },
    async close() {
      server.close();
    },
  };
}

function servedModel({ modelName, modelVersion }: OpenInferenceOptions, wanted: ModelVersion): ServedModel {
  const fill = (template: string): string =>
    template.replaceAll('{family}', wanted.family).replaceAll('{version}', wanted.version);
  return { name: fill(modelName), version: modelVersion === '' ? undefined : fill(modelVersion) };
}

/** @throws MillraceError INVALID_MODEL: it takes other inputs, or makes batches by itself; MODEL_UNAVAILABLE: the server is away, or lacks it */
async function checkServed(
  server: OpenInferenceServer,
  ready: () => Promise<void>,
  served: ServedModel,
  wanted: ModelVersion,
): Promise<void> {
  const reached = <T>(asked: Promise<T>): Promise<T> =>
    asked.catch((error: unknown) => {
      throw unavailable(wanted, String(error instanceof Error ? error.message : error));
    });
  await reached(ready());
  // Before anything is held against the version: a model that is still loading is described by and by.
  const signature = await reached(server.signature(served));
  // First: the shapes of one that makes batches have an axis more, which would be told as if the config were wrong.
  const batchSizeMax = await server.batchSizeMax(served);
  if (batchSizeMax > 0) throw makesBatches(wanted, batchSizeMax);
  if (signature !== undefined) checkGraph(wanted, signature);
}

/** Versions that are loaded one after another wait once for a server that is away, not once each. */
function waitedForOnce(ready: () => Promise<void>, clock: Clock): () => Promise<void> {
  let last: { atMs: number; error: unknown } | undefined;
  return async () => {
    if (last !== undefined && clock.monotonicMs() - last.atMs < MOMENT_MS) throw last.error;
    try {
      await ready();
    } catch (error) {
      last = { atMs: clock.monotonicMs(), error };
      throw error;
    }
  };
}

function makesBatches({ family, version }: ModelVersion, batchSizeMax: number): MillraceError {
  return new MillraceError('INVALID_MODEL', `${family}/${version}: the server makes batches too`, {
    value: `max_batch_size: ${batchSizeMax}`,
    allowed: 'max_batch_size: 0',
    advice:
      'Batches are made by the worker, which knows the deadlines; its inputs have no common first axis.',
  });
}

/** Bytes where the server takes them; some refuse them, and some answer what is none of the protocol. */
async function formOf(
  runIn: (form: TensorForm) => RunGraph,
  check: (run: RunGraph) => Promise<void>,
): Promise<TensorForm> {
  let wasReached = true;
  const inBytes: RunGraph = async (call) => {
    const answer = await runIn('bytes')(call);
    wasReached = answer.kind !== 'unavailable';
    return answer;
  };
  try {
    await check(inBytes);
    return 'bytes';
  } catch (error) {
    // One that was away has said nothing about bytes, and what is found here stays for as long as the version is loaded.
    if (!wasReached) throw error;
    await check(runIn('numbers'));
    return 'numbers';
  }
}

/** A server may come, load the model, or get well: only what it says of the model, and what it computes, is held against a version for good. */
function unavailable(version: ModelVersion, message: string): MillraceError {
  return new MillraceError(
    'MODEL_UNAVAILABLE',
    `${version.family}/${version.version}: the server fails on it: ${message}`,
  );
}
