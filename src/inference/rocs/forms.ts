import { InferenceSession, Tensor } from 'onnxruntime-node';
import { cutText } from '../../core/cut-text.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Dim, OnnxGraph } from '../onnx-file/graph.ts';
import { writeGraph } from '../onnx-file/write-graph.ts';
import { type Compiled, compileGraph, type InputGroups } from './compile.ts';
import type { CompileOptions } from './rules/step.ts';
import { cutSides, type Sides, withArtefactShapes } from './sides.ts';
import { repeatedFeeds, sharedFeeds, type TrialBatch, type TrialFeeds } from './trial-batch.ts';

/** What a run gives: numbers by output. */
export type Outputs = ReadonlyMap<string, Float32Array>;

/** One set of weights as it was given and as one graph, each opened in onnxruntime, on one thread. */
export interface OneGraphForms {
  readonly compiled: Compiled;
  /** A batch as the forms take it; making it is not part of a run. */
  prepare(batch: TrialBatch): PreparedBatch;
  readonly run: {
    /** (a) as it was given. */
    naive(batch: PreparedBatch): Promise<Outputs>;
    /** (c) one graph. */
    shared(batch: PreparedBatch): Promise<Outputs>;
  };
  close(): Promise<void>;
}

/** With the two graphs that it can be cut into, and what it is measured against. */
export interface Forms extends OneGraphForms {
  readonly sides: Sides;
  /** The request side once per request, with what candidates meet copied for each of them. */
  readonly copies: Compiled;
  readonly run: OneGraphForms['run'] & {
    /** (b) with copies. */
    copies(batch: PreparedBatch): Promise<Outputs>;
    /** (d) the candidate's graph on an artefact. */
    candidate(batch: PreparedBatch, artefact: TrialArtefact): Promise<Outputs>;
    artefact(batch: PreparedBatch): Promise<TrialArtefact>;
  };
}

export type TrialArtefact = InferenceSession.OnnxValueMapType;

export interface PreparedBatch {
  /** A row per candidate everywhere. */
  readonly given: InferenceSession.OnnxValueMapType;
  /** With what the batch planner makes. */
  readonly shared: InferenceSession.OnnxValueMapType;
}

type Options = Pick<CompileOptions, 'strict'>;

/** @throws MillraceError INVALID_MODEL where the model cannot be compiled */
export function openOneGraph(
  graph: OnnxGraph,
  groups: InputGroups,
  options: Options,
): Promise<OneGraphForms> {
  return openCompiled(graph, groups, compileGraph(graph, groups, { ...options, attention: 'tiles' }));
}

async function openCompiled(
  graph: OnnxGraph,
  groups: InputGroups,
  compiled: Compiled,
): Promise<OneGraphForms> {
  const [a, c] = await Promise.all([open(graph), open(compiled.graph)]);
  return {
    compiled,
    prepare: (batch) => ({
      given: tensors(repeatedFeeds(batch, groups)),
      shared: tensors(sharedFeeds(batch, compiled.rowOf)),
    }),
    run: { naive: ({ given }) => run(a, given), shared: ({ shared }) => run(c, shared) },
    close: async () => {
      await Promise.all([a.release(), c.release()]);
    },
  };
}

/** @throws MillraceError INVALID_MODEL where the model cannot be compiled, or not be cut */
export async function openForms(graph: OnnxGraph, groups: InputGroups, options: Options): Promise<Forms> {
  const compiled = compileGraph(graph, groups, { ...options, attention: 'tiles' });
  const copies = compileGraph(graph, groups, { ...options, attention: 'copies' });
  const cut = cutSides(compiled);
  const one = await openCompiled(graph, groups, compiled);
  const request = await open(cut.request);
  const sides = withArtefactShapes(cut, shapesOf(request));
  const [b, candidate] = await Promise.all([open(copies.graph), open(sides.candidate)]);
  return {
    ...one,
    ...{ sides, copies },
    run: {
      ...one.run,
      copies: ({ shared }) => run(b, shared),
      candidate: ({ shared }, artefact) => run(candidate, { ...shared, ...artefact }),
      artefact: ({ shared }) => request.run(taken(request, shared)),
    },
    close: async () => {
      await Promise.all([one.close(), ...[b, request, candidate].map((session) => session.release())]);
    },
  };
}

/** Of a graph's outputs, as onnxruntime infers them; those of which it knows no axis are left out. */
function shapesOf({ outputMetadata }: InferenceSession): ReadonlyMap<string, readonly Dim[]> {
  return new Map(
    outputMetadata.flatMap((output): [string, readonly Dim[]][] => {
      if (!output.isTensor || output.shape.length === 0) return [];
      const { name, shape } = output;
      return [[name, shape.map((size, axis) => (size === '' ? `${name}.${axis}` : size))]];
    }),
  );
}

function open(graph: OnnxGraph): Promise<InferenceSession> {
  return InferenceSession.create(writeGraph(graph), {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  }).catch((cause: unknown) => {
    throw refusedByRuntime(`ONNX Runtime does not open ${cutText(graph.name, NAME_SHOWN_MAX)}`, cause);
  });
}

async function run(
  session: InferenceSession,
  feeds: Record<string, InferenceSession.OnnxValueMapType[string]>,
): Promise<Outputs> {
  const outputs = await session.run(taken(session, feeds)).catch((cause: unknown) => {
    throw refusedByRuntime('ONNX Runtime does not run the model on made-up inputs', cause);
  });
  return new Map(
    Object.entries(outputs).map(([name, { data }]) => {
      if (data instanceof Float32Array) return [name, data];
      throw new MillraceError('INVALID_MODEL', `output ${name} is not of 32-bit floats`, {
        allowed: 'FLOAT (FP32)',
        advice: 'Export the model with scores alone as outputs.',
      });
    }),
  );
}

/** ONNX Runtime quotes names of the graph, whatever their length. */
const QUOTED_MAX = 1_024;
const NAME_SHOWN_MAX = 128;

/** What the runtime says of a model, on one line. */
export function refusedByRuntime(what: string, cause: unknown): MillraceError {
  const reason = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ');
  return new MillraceError('INVALID_MODEL', `${what}: ${cutText(reason, QUOTED_MAX)}`, { cause });
}

function taken(
  session: InferenceSession,
  feeds: InferenceSession.OnnxValueMapType,
): InferenceSession.OnnxValueMapType {
  return Object.fromEntries(Object.entries(feeds).filter(([name]) => session.inputNames.includes(name)));
}

function tensors(feeds: TrialFeeds): InferenceSession.OnnxValueMapType {
  return Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => [name, new Tensor(type, data, dims)]),
  );
}
