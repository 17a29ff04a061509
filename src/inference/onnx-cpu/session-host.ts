/**
 * The thread that owns the ONNX Runtime sessions of one accelerator. `InferenceSession.run` computes on the thread that calls
 * it, so the event loop of the pipeline stays free only if that is another thread. Commands run one after another.
 */
import { parentPort } from 'node:worker_threads';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { elementCount } from '../../core/request/tensor.ts';
import type { GraphValue, SlabTensor } from '../graph-call.ts';
import type { IndexedLayers } from '../indexed-layers/indexed-layers.ts';
import type { InputRows } from '../indexed-layers/plan-layers.ts';
import { padEmpty } from '../padding.ts';
import type { FirstLayer } from '../sparse-kernel/first-layer.ts';
import type {
  LayersSession,
  Provider,
  SessionAnswer,
  SessionCall,
  SessionCommand,
  SessionOptions,
  SessionReply,
  SparseSession,
} from './messages.ts';

interface RuntimeSession {
  session: InferenceSession;
  provider: Provider;
  /** Products that are computed before it, over non-zeros. */
  firstLayer?: FirstLayer;
}

type OpenSession = RuntimeSession | { layers: IndexedLayers };

const sessions = new Map<number, OpenSession>();
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
        await release(command.session);
        return { kind: 'released' };
    }
  } catch (error) {
    const message = messageOf(error);
    return command.kind === 'run'
      ? { kind: 'failed', message, slab: command.slab }
      : { kind: 'failed', message };
  }
}

async function release(id: number): Promise<void> {
  const open = sessions.get(id);
  sessions.delete(id);
  if (open !== undefined && 'session' in open) await open.session.release();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function create({
  graph,
  options,
  sparseInputs,
  inputRows,
}: Extract<SessionCommand, { kind: 'create' }>): Promise<SessionAnswer> {
  const session = await openSession(graph, options);
  const signature = { inputs: values(session.inputMetadata), outputs: values(session.outputMetadata) };
  const kept = keep({ session, provider: options.provider });
  const layers = inputRows === undefined ? undefined : await openLayered(graph, inputRows);
  const answer = {
    kind: 'created' as const,
    session: kept,
    signature,
    ...(layers === undefined ? {} : { layers }),
  };
  if (sparseInputs === undefined) return answer;
  return { ...answer, sparse: await openSparse(graph, options, sparseInputs) };
}

async function openLayered(graph: Uint8Array, inputRows: InputRows): Promise<LayersSession | undefined> {
  const { openLayers } = await import('../indexed-layers/open-layers.ts');
  const opened = openLayers(graph, inputRows);
  if (opened.kind === 'refused') return undefined;
  return { session: keep({ layers: opened.layers }), work: opened.work };
}

function keep(open: OpenSession): number {
  created += 1;
  sessions.set(created, open);
  return created;
}

function openSession(
  graph: Uint8Array,
  { intraOpThreads, executionMode, provider }: SessionOptions,
): Promise<InferenceSession> {
  return InferenceSession.create(graph, {
    executionProviders: provider === 'cpu' ? ['cpu'] : [provider, 'cpu'],
    intraOpNumThreads: intraOpThreads,
    interOpNumThreads: executionMode === 'parallel' ? intraOpThreads : 1,
    executionMode,
    logSeverityLevel: 4,
  });
}

/** What it needs is loaded for those who ask for it. Whatever fails here leaves the session of the whole graph. */
async function openSparse(
  graph: Uint8Array,
  options: SessionOptions,
  inputs: readonly string[],
): Promise<SparseSession> {
  try {
    const { openBehindProducts } = await import('../sparse-kernel/open-behind-products.ts');
    const behind = openBehindProducts(graph, inputs);
    if (behind.kind === 'refused') return { refused: behind.why };
    const session = await openSession(behind.rest, options);
    return { session: keep({ session, provider: options.provider, firstLayer: behind.firstLayer }) };
  } catch (error) {
    return { refused: messageOf(error) };
  }
}

function values(metadata: readonly InferenceSession.ValueMetadata[]): GraphValue[] {
  return metadata.map((value) =>
    value.isTensor
      ? { name: value.name, type: value.type, shape: [...value.shape] }
      : { name: value.name, type: undefined, shape: [] },
  );
}

async function run(command: Extract<SessionCommand, { kind: 'run' }>): Promise<SessionAnswer> {
  const startedMs = nowMs();
  const open = sessions.get(command.session);
  if (open === undefined) throw new RangeError(`there is no session ${command.session}`);
  const { slab, feeds, outputs } = command;
  if ('layers' in open) {
    open.layers.run(slab, feeds, outputs);
    return { kind: 'ran', slab, computeMs: nowMs() - startedMs };
  }
  const { session, provider, firstLayer } = open;
  if (provider === 'webgpu' && outputs.every(({ dims }) => elementCount(dims) === 0))
    return { kind: 'ran', slab, computeMs: 0 };
  const tensors: Record<string, Tensor> = {};
  for (const feed of feeds)
    if (session.inputNames.includes(feed.name)) tensors[feed.name] = tensorFor(provider, slab, feed);
  const first = firstLayer?.run(slab, feeds);
  for (const { name, values, dims } of first?.multiplied ?? [])
    tensors[name] = new Tensor('float32', values, dims);
  const results = await session.run(
    tensors,
    outputs.map(({ name }) => name),
  );
  for (const output of outputs) copyOutput(results[output.name], slab, output);
  const ran = { kind: 'ran' as const, slab, computeMs: nowMs() - startedMs };
  return first === undefined ? ran : { ...ran, density: first.density };
}

/**
 * The thread's own time, of which only differences are told. The near side cannot see what a call took: where its event loop is busy it reads two
 * answers at once, and one of them seems to have taken the time of both, the other none.
 */
function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function tensorFor(provider: Provider, slab: ArrayBuffer, feed: SlabTensor): Tensor {
  if (provider !== 'webgpu') return tensorOf(slab, feed);
  const padded = padEmpty(slab, feed);
  return tensorOf(padded.slab, padded.tensor);
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
