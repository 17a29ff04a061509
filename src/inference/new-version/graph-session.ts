import { InferenceSession, Tensor } from 'onnxruntime-node';
import { MillraceError } from '../../core/errors.ts';
import { refusedByRuntime } from '../rocs/forms.ts';
import type { TrialFeeds } from '../rocs/trial-batch.ts';

export interface GraphOutput {
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** A graph in onnxruntime, on one thread. */
export interface GraphSession {
  /** Feeds that the graph does not take are left out. @throws MillraceError INVALID_MODEL where it cannot compute */
  run(feeds: TrialFeeds): Promise<ReadonlyMap<string, GraphOutput>>;
  close(): Promise<void>;
}

/**
 * @param what names the graph in messages
 * @param outputs that are wanted; all of them where left out
 * @throws MillraceError INVALID_MODEL where onnxruntime refuses it
 */
export async function openGraphSession(
  graph: Uint8Array,
  what: string,
  outputs?: readonly string[],
): Promise<GraphSession> {
  const session = await InferenceSession.create(graph, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  }).catch((cause: unknown) => {
    throw refusedByRuntime(`ONNX Runtime does not open ${what}`, cause);
  });
  const names = new Set(session.inputNames);
  const wanted = outputs ?? session.outputNames;
  return {
    async run(feeds) {
      const taken = Object.entries(feeds).filter(([name]) => names.has(name));
      const tensors = taken.map(([name, { type, data, dims }]) => [name, new Tensor(type, data, dims)]);
      const answer = await session.run(Object.fromEntries(tensors), wanted).catch((cause: unknown) => {
        throw refusedByRuntime(`ONNX Runtime does not run ${what}`, cause);
      });
      return new Map(Object.entries(answer).map(([name, output]) => [name, outputOf(name, output)]));
    },
    close: () => session.release(),
  };
}

function outputOf(name: string, { data, dims }: InferenceSession.OnnxValueMapType[string]): GraphOutput {
  if (data instanceof Float32Array) return { dims, values: data };
  throw new MillraceError('INVALID_MODEL', `output ${name} is not of 32-bit floats`, {
    allowed: 'FLOAT (FP32)',
    advice: 'Name the outputs that are scores: --outputs',
  });
}
