import { createHash } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import { seededRandom } from '../../core/random/seeded-random.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import { writeGraph } from '../onnx-file/write-graph.ts';
import { compileRankBy, type RankBy } from '../rank-by.ts';
import { chosenOutputs, withSizes } from './chosen-graph.ts';
import { type ConfigHead, configText, type VersionWords } from './config-text.ts';
import { exampleRequest } from './example-request.ts';
import {
  checkNumbers,
  goldenCases,
  goldenText,
  type MadeCase,
  type MadeGolden,
  valuesOf,
} from './golden-cases.ts';
import { type GraphSession, openGraphSession } from './graph-session.ts';
import { type PlannedHead, planHeads, withHeads } from './heads.ts';
import { candidatesWithin } from './input-bounds.ts';
import { planInputs, type SaidInputs } from './input-plan.ts';
import { feedsAlone, feedsTogether, madeRequest } from './made-request.ts';
import { costText, type MeasuredCost, measuredCost } from './measured-cost.ts';
import { type InputPlan, isSequenceInput } from './planned-input.ts';
import { isProbability } from './probability.ts';
import { type SharedGraph, sharedGraph } from './shared-graph.ts';

export interface GivenModel {
  /** Names the file in messages and in config.yaml. */
  readonly source: string;
  readonly bytes: Uint8Array;
  readonly graph: OnnxGraph;
}

/** What a person said of it. */
export interface VersionOptions {
  readonly inputs: SaidInputs;
  /** By the name of an axis whose size each call decides: the size that it gets. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Outputs that are scores; all where `undefined`. */
  readonly outputs: readonly string[] | undefined;
  readonly heads: readonly string[] | undefined;
  /** `rankBy` may be left out where there is one head. */
  readonly words: Omit<VersionWords, 'rankBy' | 'calibrationTarget'> & {
    readonly rankBy: string | undefined;
    readonly calibrationTarget: string | undefined;
  };
  readonly unmasked: boolean;
  readonly share: boolean;
  readonly seed: number;
  readonly measureMs: number;
  /** Largest request, bytes: no more is tried. */
  readonly requestBytesMax: number;
}

export interface MadeVersion {
  /** By name, in the folder of the version. */
  readonly files: ReadonlyMap<string, Uint8Array | string>;
  readonly plan: InputPlan;
  readonly heads: readonly ConfigHead[];
  readonly rankBy: string;
  readonly emptySequences: boolean;
  readonly limits: Pick<VersionWords, 'candidatesMax' | 'rowsMax' | 'slaMs'>;
  readonly sharing: Omit<SharedGraph, 'graph'>;
  readonly goldenCases: number;
  readonly cost: MeasuredCost;
}

const PROBE = { candidates: 3, rows: 5 };
const EXAMPLE = { candidates: 3, rows: 2 };

/**
 * Every file of a version, out of a model file: nothing is written. What the version gives is held against the file as it was given.
 * @throws MillraceError INVALID_MODEL, INVALID_CONFIG
 */
export async function makeVersion(
  model: GivenModel,
  options: VersionOptions,
  { clock }: { clock: Pick<Clock, 'monotonicMs'> },
): Promise<MadeVersion> {
  const graph = chosenOutputs(withSizes(model.graph, options.sizes), options.outputs);
  const plan = planInputs(graph, options.inputs);
  const candidatesTried = Math.min(
    options.words.candidatesMax,
    candidatesWithin(plan, options.requestBytesMax),
  );
  const names = graph.outputs.map(({ name }) => name);
  const given = await openGraphSession(model.bytes, model.source, names);
  try {
    const heads = await headsOf(graph, plan, given, options);
    const random = seededRandom(options.seed).stream('sharing');
    const shared = await sharedGraph(graph, plan, { ...options, random });
    const made = writeGraph(withHeads(shared.graph, heads));
    const session = await openGraphSession(made, 'the graph that was made of it');
    try {
      return await describedVersion({
        ...{ model, options, graph, plan, candidatesTried },
        ...{ given, heads, shared, made, session, clock },
      });
    } finally {
      await session.close();
    }
  } finally {
    await given.close();
  }
}

async function headsOf(
  graph: OnnxGraph,
  plan: InputPlan,
  given: GraphSession,
  { heads, seed, words }: VersionOptions,
): Promise<PlannedHead[]> {
  const sizes = { ...PROBE, rows: Math.min(PROBE.rows, words.rowsMax) };
  const request = madeRequest(graph, plan, sizes, seededRandom(seed).stream('probe'));
  const observed = await given.run(feedsAlone(plan, request));
  const planned = planHeads(graph.outputs, observed, sizes.candidates, heads);
  // The compiler's check would only say that no number equals another.
  checkNumbers(valuesOf(planned, observed));
  return planned;
}

interface Parts {
  readonly model: GivenModel;
  readonly options: VersionOptions;
  readonly graph: OnnxGraph;
  readonly plan: InputPlan;
  readonly candidatesTried: number;
  readonly given: GraphSession;
  readonly heads: readonly PlannedHead[];
  readonly shared: SharedGraph;
  readonly made: Uint8Array;
  readonly session: GraphSession;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** What was found out about the version. */
interface Found {
  readonly rankBy: RankBy;
  readonly emptySequences: boolean;
  readonly golden: MadeGolden;
  readonly cost: MeasuredCost;
  readonly heads: readonly ConfigHead[];
}

async function describedVersion(parts: Parts): Promise<MadeVersion> {
  const { options, plan, shared } = parts;
  const { candidatesMax, rowsMax, slaMs } = options.words;
  const found = await foundOut(parts);
  const { rankBy, emptySequences, golden, cost, heads } = found;
  return {
    files: filesOf(parts, found),
    ...{ plan, heads, rankBy: rankBy.expression, emptySequences, cost },
    limits: { candidatesMax, rowsMax, slaMs },
    sharing: { sharing: shared.sharing, usesTiles: shared.usesTiles, ...multiplicationsOf(shared) },
    goldenCases: golden.cases.length,
  };
}

async function foundOut(parts: Parts): Promise<Found> {
  const { model, options, graph, plan, given, heads, session: made, clock } = parts;
  const { rowsMax } = options.words;
  const streams = seededRandom(options.seed);
  const rankBy = rankByOf(heads, options.words);
  const emptySequences = await bearsEmptySequences(parts);
  const shapes = { graph, plan, made, candidatesMax: parts.candidatesTried, rowsMax };
  const golden = await goldenCases({
    ...{ ...shapes, given, heads, rankBy, emptySequences },
    random: streams.stream('golden'),
  });
  const cost = await measuredCost({
    ...{ ...shapes, clock, measureMs: options.measureMs },
    random: streams.stream('cost'),
  });
  const described = heads.map((head) => describeHead(graph, head, golden.cases, model.source));
  return { rankBy, emptySequences, golden, cost, heads: described };
}

function filesOf({ model, options, graph, plan, shared, made }: Parts, found: Found): MadeVersion['files'] {
  const { family, version, synthetic, candidatesMax, rowsMax, calibrationTarget } = options.words;
  const { heads, emptySequences, golden, cost } = found;
  const config = configText({
    ...{ source: model.source, opset: graph.opset, inputs: plan.inputs, emptySequences, heads },
    digest: `sha256:${createHash('sha256').update(made).digest('hex')}`,
    usesTiles: shared.usesTiles,
    words: {
      ...options.words,
      rankBy: found.rankBy.expression,
      calibrationTarget: calibrationTarget ?? `${family}/${heads.map(({ name }) => name).join(',')}`,
    },
  });
  const madeBy = `millrace model init, seed ${options.seed}: made-up inputs; outputs by onnxruntime-node on the CPU, of ${model.source} as it was given, each request alone`;
  const sizes = {
    candidates: Math.min(EXAMPLE.candidates, candidatesMax),
    rows: Math.min(EXAMPLE.rows, rowsMax),
  };
  const example = madeRequest(graph, plan, sizes, seededRandom(options.seed).stream('example'));
  return new Map<string, Uint8Array | string>([
    ['model.onnx', made],
    ['config.yaml', config],
    ['golden.json', goldenText({ family, version, synthetic, madeBy }, golden)],
    ['cost.json', costText({ family, version }, cost)],
    ['request.json', exampleRequest(family, plan, example)],
  ]);
}

function multiplicationsOf({ multiplications }: SharedGraph): Pick<SharedGraph, 'multiplications'> {
  return multiplications === undefined ? {} : { multiplications };
}

/** @throws MillraceError INVALID_CONFIG where it must be said which head ranks */
function rankByOf(heads: readonly PlannedHead[], { rankBy, hints }: VersionOptions['words']): RankBy {
  const names = heads.map(({ name }) => name);
  const [only = ''] = names;
  if (rankBy === undefined && names.length > 1) {
    throw new MillraceError(
      'INVALID_CONFIG',
      'the model has more than one head, and nothing says how they rank',
      {
        value: names.join(', '),
        allowed: 'an expression over them: numbers, names, + - * / ( )',
        advice: `Say it, such as --rank-by "${names.slice(0, 2).join(' + ')}", or --rank-by ${only}`,
      },
    );
  }
  return compileRankBy(rankBy ?? only, names, hints);
}

/** Whether both graphs give numbers for a request whose sequences have no rows. */
async function bearsEmptySequences({ graph, plan, given, session, heads, options }: Parts): Promise<boolean> {
  if (!plan.inputs.some(isSequenceInput)) return false;
  const random = seededRandom(options.seed).stream('empty');
  const request = madeRequest(graph, plan, { candidates: PROBE.candidates, rows: 0 }, random);
  const requestOf = new Array<number>(PROBE.candidates).fill(0);
  try {
    const outputs = [
      await given.run(feedsAlone(plan, request)),
      await session.run(feedsTogether(plan, [request], requestOf, () => 0)),
    ];
    return outputs.every((each) =>
      [...valuesOf(heads, each).values()].every((values) => values.every(Number.isFinite)),
    );
  } catch (error) {
    if (error instanceof MillraceError) return false;
    throw error;
  }
}

function describeHead(
  graph: OnnxGraph,
  { name, output, column }: PlannedHead,
  cases: readonly MadeCase[],
  source: string,
): ConfigHead {
  const seen = cases.flatMap(({ outputs }) => Array.from(outputs.get(name) ?? []));
  const place = column === undefined ? output : `${output}[${column}]`;
  return { name, probability: isProbability(graph, output, seen), meaning: `output ${place} of ${source}` };
}
