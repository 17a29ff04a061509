import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import { writeGraph } from '../onnx-file/write-graph.ts';
import { type Compiled, compileGraph, type InputGroups } from './compile.ts';
import type { CompileOptions } from './rules/step.ts';
import { cutSides, type Sides } from './sides.ts';
import { repeatedFeeds, sharedFeeds, type TrialBatch, type TrialFeeds } from './trial-batch.ts';

/** What a run gives: numbers by output. */
export type Outputs = ReadonlyMap<string, Float32Array>;

/** One set of weights in the ways of computing it, each opened in onnxruntime, on one thread. */
export interface Forms {
  readonly compiled: Compiled;
  readonly sides: Sides;
  /** The request side once per request, with what candidates meet copied for each of them. */
  readonly copies: Compiled;
  /** A batch as the forms take it; making it is not part of a run. */
  prepare(batch: TrialBatch): PreparedBatch;
  readonly run: {
    /** (a) as it was given. */
    naive(batch: PreparedBatch): Promise<Outputs>;
    /** (b) with copies. */
    copies(batch: PreparedBatch): Promise<Outputs>;
    /** (c) one graph. */
    shared(batch: PreparedBatch): Promise<Outputs>;
    /** (d) the candidate's graph on an artefact. */
    candidate(batch: PreparedBatch, artefact: TrialArtefact): Promise<Outputs>;
    artefact(batch: PreparedBatch): Promise<TrialArtefact>;
  };
  close(): Promise<void>;
}

export type TrialArtefact = InferenceSession.OnnxValueMapType;

export interface PreparedBatch {
  /** A row per candidate everywhere. */
  readonly given: InferenceSession.OnnxValueMapType;
  /** With what the batch planner makes. */
  readonly shared: InferenceSession.OnnxValueMapType;
}

/** @throws MillraceError INVALID_MODEL where the model cannot be compiled */
export async function openForms(
  graph: OnnxGraph,
  groups: InputGroups,
  options: Pick<CompileOptions, 'strict'>,
): Promise<Forms> {
  const compiled = compileGraph(graph, groups, { ...options, attention: 'tiles' });
  const copies = compileGraph(graph, groups, { ...options, attention: 'copies' });
  const sides = cutSides(compiled);
  const [a, b, c, request, candidate] = (await Promise.all(
    [graph, copies.graph, compiled.graph, sides.request, sides.candidate].map(open),
  )) as [InferenceSession, InferenceSession, InferenceSession, InferenceSession, InferenceSession];
  return {
    compiled,
    sides,
    copies,
    prepare: (batch) => ({
      given: tensors(repeatedFeeds(batch, groups)),
      shared: tensors(sharedFeeds(batch, compiled.rowOf)),
    }),
    run: {
      naive: ({ given }) => run(a, given),
      copies: (batch) => run(b, batch.shared),
      shared: (batch) => run(c, batch.shared),
      candidate: (batch, artefact) => run(candidate, { ...batch.shared, ...artefact }),
      artefact: (batch) => request.run(taken(request, batch.shared)),
    },
    close: async () => {
      await Promise.all([a, b, c, request, candidate].map((session) => session.release()));
    },
  };
}

function open(graph: OnnxGraph): Promise<InferenceSession> {
  return InferenceSession.create(writeGraph(graph), {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  });
}

async function run(
  session: InferenceSession,
  feeds: Record<string, InferenceSession.OnnxValueMapType[string]>,
): Promise<Outputs> {
  const outputs = await session.run(taken(session, feeds));
  return new Map(
    Object.entries(outputs).map(([name, { data }]) => {
      if (!(data instanceof Float32Array)) throw new TypeError(`${name} is not FP32`);
      return [name, data];
    }),
  );
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
