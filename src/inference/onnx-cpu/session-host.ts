/**
 * The thread that owns the ONNX Runtime sessions of one accelerator. `InferenceSession.run` computes on the thread that calls
 * it, so the event loop of the pipeline stays free only if that is another thread. Commands run one after another.
 */
import { parentPort } from 'node:worker_threads';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { GraphValue, SlabTensor } from '../graph-call.ts';
import type { SessionAnswer, SessionCall, SessionCommand, SessionReply } from './messages.ts';

const sessions = new Map<number, InferenceSession>();
let created = 0;
let tail: Promise<void> = Promise.resolve();

parentPort?.on('message', ({ call, command }: SessionCall) => {
  tail = tail.then(async () => {
    const answer = await obey(command);
    const slab = 'slab' in answer ? answer.slab : undefined;
    parentPort?.postMessage({ call, answer } satisfies SessionReply, slab === undefined ? [] : [slab]);
  });
});

async function obey(command: SessionCommand): Promise<SessionAnswer> {
  try {
    switch (command.kind) {
      case 'create':
        return await create(command);
      case 'run':
        return await run(command);
      case 'release':
        await sessions.get(command.session)?.release();
        sessions.delete(command.session);
        return { kind: 'released' };
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return command.kind === 'run'
      ? { kind: 'failed', message, slab: command.slab }
      : { kind: 'failed', message };
  }
}

async function create(command: Extract<SessionCommand, { kind: 'create' }>): Promise<SessionAnswer> {
  const { intraOpThreads, executionMode } = command.options;
  const session = await InferenceSession.create(command.graph, {
    executionProviders: ['cpu'],
    intraOpNumThreads: intraOpThreads,
    interOpNumThreads: executionMode === 'parallel' ? intraOpThreads : 1,
    executionMode,
    logSeverityLevel: 4,
  });
  created += 1;
  sessions.set(created, session);
  const signature = { inputs: values(session.inputMetadata), outputs: values(session.outputMetadata) };
  return { kind: 'created', session: created, signature };
}

function values(metadata: readonly InferenceSession.ValueMetadata[]): GraphValue[] {
  return metadata.map((value) =>
    value.isTensor
      ? { name: value.name, type: value.type, shape: [...value.shape] }
      : { name: value.name, type: undefined, shape: [] },
  );
}

async function run(command: Extract<SessionCommand, { kind: 'run' }>): Promise<SessionAnswer> {
  const session = sessions.get(command.session);
  if (session === undefined) throw new RangeError(`there is no session ${command.session}`);
  const { slab, feeds, outputs } = command;
  const tensors: Record<string, Tensor> = {};
  for (const feed of feeds) tensors[feed.name] = tensorOf(slab, feed);
  const results = await session.run(
    tensors,
    outputs.map(({ name }) => name),
  );
  for (const output of outputs) copyOutput(results[output.name], slab, output);
  return { kind: 'ran', slab };
}

function tensorOf(slab: ArrayBuffer, { datatype, offset, dims }: SlabTensor): Tensor {
  const elements = elementCount(dims);
  return datatype === 'FP32'
    ? new Tensor('float32', new Float32Array(slab, offset, elements), dims)
    : new Tensor('int64', new BigInt64Array(slab, offset, elements), dims);
}

/** Out of the runtime's own memory into the slab. */
function copyOutput(result: Tensor | undefined, slab: ArrayBuffer, { name, offset, dims }: SlabTensor): void {
  const values = result?.data;
  const elements = elementCount(dims);
  if (!(values instanceof Float32Array) || values.length !== elements) {
    throw new RangeError(`output ${name} is ${result?.type} [${result?.dims}], expected float32 [${dims}]`);
  }
  new Float32Array(slab, offset, elements).set(values);
}

function elementCount(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}
