import { MillraceError } from '../../core/errors.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import type { InputGroups } from './compile.ts';
import type { Forms, OneGraphForms, Outputs, TrialArtefact } from './forms.ts';
import { type TrialBatch, trialBatch } from './trial-batch.ts';

/** Scores of two forms of a model may differ by this, as a share of the largest score of the batch. */
const DIFFERENCE_MAX = 1e-5;
const SEQUENCE = 17;
const ONE_REQUEST = [1, 2, 3, 31, 32, 33, 256, 1_024];
/** Candidates of each request of a mixed batch. */
const MIXED = [
  [1, 1, 1, 1],
  [5, 0, 40, 3],
  [200, 1, 7, 64, 2],
];

export interface Verified {
  batches: number;
  /** The largest difference between (a) and (c), as a share of the largest score. */
  difference: number;
}

/** What the two graphs give beside the one. */
export interface VerifiedTwo {
  sameBits: boolean;
  /** The largest difference between (c) and (d), as a share of the largest score. */
  difference: number;
}

interface Random {
  next(): number;
}

/**
 * Holds the compiled model against the given one on made-up batches: the same scores, and no candidate that changes another one's.
 * @throws MillraceError INVALID_MODEL with what differs
 */
export async function verifyOneGraph(
  forms: OneGraphForms,
  graph: OnnxGraph,
  groups: InputGroups,
  random: Random,
): Promise<Verified> {
  const verified: Verified = { batches: 0, difference: 0 };
  for (const batch of trialBatches(graph, groups, random)) {
    const prepared = forms.prepare(batch);
    const scores = await forms.run.shared(prepared);
    const difference = differenceOf(await forms.run.naive(prepared), scores);
    checkDifference('the model as given', 'the compiled one', batch, difference);
    verified.difference = Math.max(verified.difference, difference);
    const [changed, other] = withAnother(batch, groups, random);
    checkOthers(batch, changed, scores, await forms.run.shared(forms.prepare(other)));
    verified.batches += 1;
  }
  return verified;
}

/**
 * As `verifyOneGraph`, and the two graphs against the one: the same scores, and no candidate that changes an artefact.
 * @throws MillraceError INVALID_MODEL with what differs
 */
export async function verifyForms(
  forms: Forms,
  graph: OnnxGraph,
  groups: InputGroups,
  random: Random,
): Promise<Verified & { twoGraphs: VerifiedTwo }> {
  const verified = await verifyOneGraph(forms, graph, groups, random);
  const twoGraphs: VerifiedTwo = { sameBits: true, difference: 0 };
  const { run, prepare } = forms;
  for (const batch of trialBatches(graph, groups, random)) {
    const prepared = prepare(batch);
    const artefact = await run.artefact(prepared);
    const [one, two] = [await run.shared(prepared), await run.candidate(prepared, artefact)];
    const difference = differenceOf(one, two);
    checkDifference('one graph', 'two graphs', batch, difference);
    twoGraphs.difference = Math.max(twoGraphs.difference, difference);
    twoGraphs.sameBits &&= [...one].every(([name, values]) => sameNumbers(values, two.get(name) ?? []));
    const [, other] = withAnother(batch, groups, random);
    checkArtefact(artefact, await run.artefact(prepare(other)));
  }
  return { ...verified, twoGraphs };
}

function* trialBatches(graph: OnnxGraph, groups: InputGroups, random: Random): Generator<TrialBatch> {
  for (const counts of [...ONE_REQUEST.map((count) => [count]), ...MIXED]) {
    const sizes = {
      requests: counts.length,
      requestOf: shuffled(counts, random),
      sequence: SEQUENCE,
    };
    yield trialBatch(graph, groups, sizes, random);
  }
}

function shuffled(counts: readonly number[], random: Random): number[] {
  const rows = counts.flatMap((count, request) => new Array<number>(count).fill(request));
  return rows
    .map((request) => ({ request, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ request }) => request);
}

/** Other numbers for one candidate, and which. */
function withAnother(batch: TrialBatch, groups: InputGroups, random: Random): [number, TrialBatch] {
  const changed = Math.floor(random.next() * batch.requestOf.length);
  return [changed, { ...batch, feeds: withOther(batch, groups.at(-1) ?? [], changed) }];
}

function checkArtefact(before: TrialArtefact, after: TrialArtefact): void {
  for (const [name, { data }] of Object.entries(before)) {
    if (sameNumbers(data as ArrayLike<unknown>, after[name]?.data as ArrayLike<unknown>)) continue;
    throw new MillraceError('INVALID_MODEL', `a candidate changes ${name} of the request's artefact`);
  }
}

/** The other scores stay the same bits. */
function checkOthers({ requestOf }: TrialBatch, changed: number, scores: Outputs, others: Outputs): void {
  for (const [name, values] of scores) {
    const width = values.length / requestOf.length;
    const isOther = (at: number) => Math.floor(at / width) !== changed;
    if (sameNumbers(values, others.get(name) ?? [], isOther)) continue;
    throw new MillraceError('INVALID_MODEL', `a candidate changes another one's ${name}`);
  }
}

function withOther(
  { feeds, requestOf }: TrialBatch,
  inputs: readonly string[],
  changed: number,
): TrialBatch['feeds'] {
  const entries = Object.entries(feeds).map(([name, tensor]): [string, typeof tensor] => {
    if (!inputs.includes(name) || !(tensor.data instanceof Float32Array)) return [name, tensor];
    const width = tensor.data.length / requestOf.length;
    const data = tensor.data.map((value, at) => (Math.floor(at / width) === changed ? 0.5 - value : value));
    return [name, { ...tensor, data }];
  });
  return Object.fromEntries(entries);
}

function sameNumbers(
  a: ArrayLike<unknown>,
  b: ArrayLike<unknown>,
  where: (at: number) => boolean = () => true,
): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (where(at) && !Object.is(a[at], b[at])) return false;
  return true;
}

/** The largest difference as a share of the largest score: a sum is only known to a share of its terms. NaN where a value is none. */
export function differenceOf(a: Outputs, b: Outputs): number {
  let worst = 0;
  for (const [name, values] of a) {
    const others = b.get(name);
    if (others === undefined || others.length !== values.length) return Number.POSITIVE_INFINITY;
    const scale = values.reduce((max, value) => Math.max(max, Math.abs(value)), Number.MIN_VALUE);
    for (let at = 0; at < values.length; at += 1) {
      const difference = Math.abs((values[at] ?? 0) - (others[at] ?? 0)) / scale;
      if (!(difference <= worst)) worst = difference;
    }
  }
  return worst;
}

/** NaN is too much. */
function checkDifference(
  one: string,
  other: string,
  { requestOf, requests }: TrialBatch,
  difference: number,
): void {
  if (difference <= DIFFERENCE_MAX) return;
  throw new MillraceError(
    'INVALID_MODEL',
    `${one} and ${other} give different scores for ${requestOf.length} candidates of ${requests} requests`,
    {
      value: difference,
      allowed: `up to ${DIFFERENCE_MAX} of the largest score`,
      advice:
        'Where scores are small differences of large numbers, scale them in the graph; as it was given it serves by millrace model init --no-share.',
    },
  );
}
