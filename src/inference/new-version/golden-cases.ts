import { MillraceError } from '../../core/errors.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import type { RankBy } from '../rank-by.ts';
import type { TrialFeeds, TrialTensor } from '../rocs/trial-batch.ts';
import type { GraphOutput, GraphSession } from './graph-session.ts';
import type { PlannedHead } from './heads.ts';
import { REQUEST_INDEX, TILE_INPUTS } from './made-inputs.ts';
import { feedsAlone, feedsTogether, type MadeRequest, madeRequest, placesOf } from './made-request.ts';
import { type InputPlan, isSequenceInput } from './planned-input.ts';

/** The model as it was given, and the version that was made of it. */
export interface Compared {
  readonly graph: OnnxGraph;
  readonly plan: InputPlan;
  readonly given: GraphSession;
  readonly made: GraphSession;
  readonly heads: readonly PlannedHead[];
  readonly rankBy: RankBy;
  readonly rowsMax: number;
  readonly candidatesMax: number;
  /** Whether a request may come without its sequences. */
  readonly emptySequences: boolean;
  readonly random: { next(): number };
}

export interface MadeCase {
  readonly name: string;
  readonly inputs: TrialFeeds;
  /** By head, FP32 [candidates]. */
  readonly outputs: ReadonlyMap<string, Float32Array>;
  readonly scores: Float32Array;
}

export interface MadeGolden {
  readonly tolerance: { readonly relative: number; readonly absolute: number };
  readonly cases: readonly MadeCase[];
}

/** By case, per request of the call: rows of sequences, candidates. */
const CASES: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  'one-candidate': [[5, 1]],
  'no-sequence': [[0, 4]],
  'many-candidates': [[7, 64]],
  'two-requests': [
    [6, 6],
    [11, 3],
  ],
  'empty-request-among-others': [
    [6, 4],
    [3, 0],
    [9, 2],
  ],
  'mixed-shuffled': [
    [2, 17],
    [12, 40],
    [0, 1],
    [9, 8],
  ],
};
const PADDED_ROWS = 3;

const RELATIVE = 1e-4;
const ABSOLUTE = { min: 1e-6, max: 1e-3, ofLargest: 1e-5 };

/**
 * Golden cases of made-up requests. What must come out is what the file as it was given makes of each request alone; what the version makes of
 * them together is held against it, padding and all.
 *
 * @throws MillraceError INVALID_MODEL where the version gives other scores, and what they depend on that they must not
 */
export async function goldenCases(compared: Compared): Promise<MadeGolden> {
  const cases: { made: MadeCase; got: ReadonlyMap<string, Float32Array> }[] = [];
  let largest = 0;
  for (const [name, sizes] of Object.entries(casesOf(compared))) {
    const requests = sizes.map(([rows, candidates]) =>
      madeRequest(compared.graph, compared.plan, { rows, candidates }, compared.random),
    );
    const made = await oneCase(compared, name, requests);
    for (const values of [...made.outputs.values(), made.scores])
      for (const value of values) largest = Math.max(largest, Math.abs(value));
    cases.push({ made, got: valuesOf(compared.heads, await compared.made.run(made.inputs)) });
    await checkPadding(compared, requests, toleranceOf(largest));
  }
  const tolerance = toleranceOf(largest);
  for (const { made, got } of cases) checkCase(made, got, tolerance);
  return { tolerance, cases: cases.map(({ made }) => made) };
}

function casesOf({ plan, rowsMax, candidatesMax, emptySequences }: Compared): typeof CASES {
  const hasSequence = plan.inputs.some(isSequenceInput);
  const rowsOf = (rows: number): number =>
    hasSequence ? Math.min(Math.max(rows, emptySequences ? 0 : 1), rowsMax) : 0;
  const kept = Object.entries(CASES).filter(([name]) => name !== 'no-sequence' || emptySequences);
  return Object.fromEntries(
    kept.map(([name, sizes]) => [
      name,
      sizes.map(([rows, candidates]) => [rowsOf(rows), Math.min(candidates, candidatesMax)] as const),
    ]),
  );
}

async function oneCase(
  compared: Compared,
  name: string,
  requests: readonly MadeRequest[],
): Promise<MadeCase> {
  const { plan, heads, rankBy, random } = compared;
  const inOrder = requests.flatMap(({ candidates }, request) => new Array<number>(candidates).fill(request));
  const requestOf = name.endsWith('shuffled') ? shuffled(inOrder, random) : inOrder;
  const alone = await Promise.all(requests.map((request) => scoredAlone(compared, request)));
  const places = placesOf(requestOf);
  const outputs = new Map(
    heads.map(({ name: head }) => [
      head,
      Float32Array.from(requestOf, (request, n) => alone[request]?.get(head)?.[places[n] ?? 0] ?? Number.NaN),
    ]),
  );
  const inputs = feedsTogether(plan, requests, requestOf, () => random.next() * 2 - 1);
  return {
    name,
    inputs,
    outputs,
    scores: rankBy.score([...outputs.values()], {}, requestOf.length),
  };
}

/** What the file as it was given makes of one request. @throws MillraceError INVALID_MODEL where that is no number */
async function scoredAlone(
  { plan, given, heads }: Compared,
  request: MadeRequest,
): Promise<ReadonlyMap<string, Float32Array>> {
  if (request.candidates === 0) return new Map();
  const values = valuesOf(heads, await given.run(feedsAlone(plan, request)));
  checkNumbers(values);
  return values;
}

/** @throws MillraceError INVALID_MODEL where a head of a made-up request is no finite number */
export function checkNumbers(values: ReadonlyMap<string, Float32Array>): void {
  for (const [head, numbers] of values) {
    if (numbers.every(Number.isFinite)) continue;
    throw new MillraceError('INVALID_MODEL', `head ${head} of a made-up request is no number`, {
      value: String(numbers.find((value) => !Number.isFinite(value))),
      advice:
        'Inputs were between -1 and 1: where the model takes a logarithm or a root of them, bound them in the graph.',
    });
  }
}

/** By head, out of the outputs of the file or of the version. */
export function valuesOf(
  heads: readonly PlannedHead[],
  outputs: ReadonlyMap<string, GraphOutput>,
): ReadonlyMap<string, Float32Array> {
  return new Map(
    heads.map(({ name, output, column }) => {
      const own = outputs.get(name);
      if (own !== undefined && own.dims.length === 1) return [name, own.values];
      const { dims, values } = outputs.get(output) ?? { dims: [0, 1], values: new Float32Array(0) };
      const width = dims[1] ?? 1;
      return [
        name,
        Float32Array.from({ length: dims[0] ?? 0 }, (_, n) => values[n * width + (column ?? 0)] ?? 0),
      ];
    }),
  );
}

/** Rows of padding behind a sequence's own must not be read: how many there are depends on the other requests of a call. */
async function checkPadding(
  { plan, made, heads, random }: Compared,
  requests: readonly MadeRequest[],
  tolerance: MadeGolden['tolerance'],
): Promise<void> {
  const [first] = requests;
  const sequences = plan.inputs.filter(isSequenceInput);
  if (first === undefined || sequences.length === 0 || requests.length > 1) return;
  const requestOf = new Array<number>(first.candidates).fill(0);
  const noise = (): number => random.next() * 2 - 1;
  const padded = feedsTogether(plan, requests, requestOf, noise, first.rows + PADDED_ROWS);
  const without = valuesOf(heads, await made.run(feedsTogether(plan, requests, requestOf, noise)));
  const difference = differenceOf(without, valuesOf(heads, await made.run(padded)), tolerance);
  if (difference === undefined) return;
  const lengths = plan.inputs.filter(({ lengthOf }) => lengthOf !== undefined).map(({ name }) => name);
  throw new MillraceError('INVALID_MODEL', 'scores change with rows of padding behind a sequence', {
    value: difference,
    advice: `Sequences of a call are padded to the longest: the model must leave out rows from ${lengths.join(', ')} on. Or give the sequence one size with --size.`,
  });
}

function checkCase(
  made: MadeCase,
  got: ReadonlyMap<string, Float32Array>,
  tolerance: MadeGolden['tolerance'],
): void {
  const difference = differenceOf(made.outputs, got, tolerance);
  if (difference === undefined) return;
  const isAlone = made.inputs[REQUEST_INDEX]?.data.every((request) => Number(request) === 0);
  throw new MillraceError(
    'INVALID_MODEL',
    isAlone === true
      ? 'the version gives other scores than the file, for a request alone'
      : 'scores of a request change with the other requests of a call',
    {
      value: `${made.name}: ${difference}`,
      allowed: `a difference of ${tolerance.relative} of the value, or ${tolerance.absolute}`,
      advice:
        'Each row must be computed by itself, and the inputs of the request must be the same for all candidates.',
    },
  );
}

/** The first value that differs, in words. */
function differenceOf(
  want: ReadonlyMap<string, Float32Array>,
  got: ReadonlyMap<string, Float32Array>,
  { relative, absolute }: MadeGolden['tolerance'],
): string | undefined {
  for (const [head, values] of want) {
    const others = got.get(head);
    const wrong = values.findIndex(
      (value, n) => !(Math.abs((others?.[n] ?? Number.NaN) - value) <= absolute + relative * Math.abs(value)),
    );
    if (wrong >= 0) return `${head}[${wrong}] is ${others?.[wrong]}, not ${values[wrong]}`;
    if (others?.length !== values.length) return `${others?.length} values of ${head}, not ${values.length}`;
  }
  return undefined;
}

/** A sum is only known to a share of its terms: near zero the largest score says how exact a value can be. */
function toleranceOf(largest: number): MadeGolden['tolerance'] {
  const absolute = Math.min(ABSOLUTE.max, Math.max(ABSOLUTE.min, ABSOLUTE.ofLargest * largest));
  return { relative: RELATIVE, absolute: Number(absolute.toPrecision(2)) };
}

function shuffled(values: readonly number[], random: { next(): number }): number[] {
  return values
    .map((value) => ({ value, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

/** golden.json, format 1. Whoever runs a case lays its candidates out in tiles anew. */
export function goldenText(
  head: { family: string; version: number; synthetic: boolean; madeBy: string },
  { tolerance, cases }: MadeGolden,
): string {
  const lines = cases.map(({ name, inputs, outputs, scores }) =>
    JSON.stringify({
      name,
      inputs: Object.fromEntries(
        Object.entries(inputs)
          .filter(([input]) => !TILE_INPUTS.includes(input))
          .map(([input, tensor]) => [input, tensorText(tensor)]),
      ),
      outputs: Object.fromEntries([...outputs].map(([key, values]) => [key, vectorText(values)])),
      scores: vectorText(scores),
    }),
  );
  const start = JSON.stringify({ format: 1, ...head, tolerance });
  return `${start.slice(0, -1)},"cases":[\n${lines.join(',\n')}\n]}\n`;
}

function vectorText(values: Float32Array): object {
  return tensorText({ type: 'float32', data: values, dims: [values.length] });
}

function tensorText({ type, data, dims }: TrialTensor): object {
  const base64 = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  return { datatype: type === 'float32' ? 'FP32' : 'INT64', shape: dims, base64 };
}
