import { MillraceError } from '../../core/errors.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import type { InputGroups } from './compile.ts';
import type { Forms, Outputs } from './forms.ts';
import { type TrialBatch, trialBatch } from './trial-batch.ts';

/** The scores of the compiled model may differ by this from those of the given one, as a share of the largest score of the batch. */
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

/**
 * Holds the compiled model against the given one on made-up batches: the same scores, the two graphs the same bits as the one, and no candidate
 * that changes an artefact or another candidate's score.
 * @throws MillraceError INVALID_MODEL with what differs
 */
export async function verifyForms(
  forms: Forms,
  graph: OnnxGraph,
  groups: InputGroups,
  random: { next(): number },
): Promise<Verified> {
  const verified: Verified = { batches: 0, difference: 0 };
  for (const counts of [...ONE_REQUEST.map((count) => [count]), ...MIXED]) {
    const requestOf = shuffled(counts, random);
    const batch = trialBatch(
      graph,
      groups,
      { requests: counts.length, requestOf, sequence: SEQUENCE },
      random,
    );
    verified.difference = Math.max(verified.difference, await verifyBatch(forms, batch));
    await verifyApart(forms, batch, groups, random);
    verified.batches += 1;
  }
  return verified;
}

function shuffled(counts: readonly number[], random: { next(): number }): number[] {
  const rows = counts.flatMap((count, request) => new Array<number>(count).fill(request));
  return rows
    .map((request) => ({ request, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ request }) => request);
}

async function verifyBatch({ run, prepare }: Forms, batch: TrialBatch): Promise<number> {
  const prepared = prepare(batch);
  const shared = await run.shared(prepared);
  const cut = await run.candidate(prepared, await run.artefact(prepared));
  if (differenceOf(shared, cut) !== 0)
    throw different('one graph', 'two graphs', batch, differenceOf(shared, cut));
  const difference = differenceOf(await run.naive(prepared), shared);
  if (!(difference <= DIFFERENCE_MAX))
    throw different('the model as given', 'the compiled one', batch, difference);
  return difference;
}

/** Other numbers for one candidate: the artefact and the other scores stay the same bits. */
async function verifyApart(
  { run, prepare }: Forms,
  batch: TrialBatch,
  groups: InputGroups,
  random: { next(): number },
): Promise<void> {
  const changed = Math.floor(random.next() * batch.requestOf.length);
  const own = prepare(batch);
  const other = prepare({ ...batch, feeds: withOther(batch, groups.at(-1) ?? [], changed) });
  const [before, after] = [await run.artefact(own), await run.artefact(other)];
  for (const [name, { data }] of Object.entries(before)) {
    if (!sameNumbers(data as ArrayLike<unknown>, after[name]?.data as ArrayLike<unknown>, () => true)) {
      throw new MillraceError('INVALID_MODEL', `a candidate changes ${name} of the request's artefact`);
    }
  }
  const [scores, others] = [await run.shared(own), await run.shared(other)];
  for (const [name, values] of scores) {
    const width = values.length / batch.requestOf.length;
    const isOther = (at: number) => Math.floor(at / width) !== changed;
    if (!sameNumbers(values, others.get(name) ?? [], isOther)) {
      throw new MillraceError('INVALID_MODEL', `a candidate changes another one's ${name}`);
    }
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

function sameNumbers(a: ArrayLike<unknown>, b: ArrayLike<unknown>, where: (at: number) => boolean): boolean {
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

function different(
  one: string,
  other: string,
  { requestOf, requests }: TrialBatch,
  difference: number,
): MillraceError {
  return new MillraceError(
    'INVALID_MODEL',
    `${one} and ${other} give different scores for ${requestOf.length} candidates of ${requests} requests`,
    { value: difference, allowed: `${DIFFERENCE_MAX} of the largest score` },
  );
}
