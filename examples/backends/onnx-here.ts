import { InferenceSession, Tensor } from 'onnxruntime-node';
import { MillraceError } from '../../src/core/errors.ts';
import { checkGolden } from '../../src/inference/golden-check.ts';
import type { GraphCall, RunGraph, SlabTensor } from '../../src/inference/graph-call.ts';
import { createSlabArena } from '../../src/inference/memory/slab-arena.ts';
import { PackedModel } from '../../src/inference/packed-model.ts';
import type { ModelRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator, AcceleratorCapabilities } from '../../src/ports/accelerator.ts';

const CAPABILITIES: AcceleratorCapabilities = {
  backend: 'onnx-here',
  simulated: false,
  kernels: ['dense'],
  memories: ['host'],
  datatypes: ['FP32', 'INT64'],
};

/** ONNX Runtime in the thread that calls it: the least that a backend is made of. A real one computes elsewhere, so that the event loop stays free. */
export function createOnnxHereAccelerator({ repository }: { repository: ModelRepository }): Accelerator {
  const arena = createSlabArena({ keptBytesMax: 64 * 2 ** 20 });
  const open = new Set<PackedModel>();
  return {
    capabilities: CAPABILITIES,
    failed: new Promise(() => undefined),
    async load(family, version) {
      const wanted = repository.version(family, version);
      const tables = await repository.itemTables(wanted);
      const session = await InferenceSession.create(await repository.readGraph(wanted));
      const runGraph: RunGraph = (call) => runOn(session, call);
      const refused = (_: unknown, message: string): MillraceError =>
        new MillraceError('INVALID_MODEL', message);
      await checkGolden(wanted, await repository.readGolden(wanted), runGraph, refused);
      const model: PackedModel = new PackedModel({
        ...{ version: wanted, tables, capabilities: CAPABILITIES, arena, runGraph },
        onUnload: async () => {
          open.delete(model);
          await session.release();
        },
      });
      open.add(model);
      return model;
    },
    async close() {
      await Promise.all([...open].map((model) => model.unload()));
    },
  };
}

async function runOn(session: InferenceSession, { slab, feeds, outputs }: GraphCall): ReturnType<RunGraph> {
  const startedMs = performance.now();
  try {
    const tensors = Object.fromEntries(feeds.map((feed) => [feed.name, tensorOf(slab, feed)]));
    const results = await session.run(tensors);
    for (const { name, offset, dims } of outputs) {
      const values = results[name]?.data;
      if (!(values instanceof Float32Array)) throw new RangeError(`output ${name} is not FP32`);
      new Float32Array(slab, offset, dims[0]).set(values);
    }
    return { kind: 'ran', slab, computeMs: performance.now() - startedMs };
  } catch (error) {
    return { kind: 'failed', message: String(error), slab, computeMs: performance.now() - startedMs };
  }
}

function tensorOf(slab: ArrayBuffer, { datatype, offset, dims }: SlabTensor): Tensor {
  const elements = dims.reduce((product, size) => product * size, 1);
  return datatype === 'FP32'
    ? new Tensor('float32', new Float32Array(slab, offset, elements), dims)
    : new Tensor('int64', new BigInt64Array(slab, offset, elements), dims);
}
