import { systemClock } from '../src/adapters/system/clock.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { type Forms, openForms } from '../src/inference/rocs/forms.ts';
import { measureForms, measureTogether, type Throughput } from '../src/inference/rocs/throughput.ts';
import { verifyForms } from '../src/inference/rocs/verify.ts';
import {
  crossNetwork,
  deepCrossAttention,
  type Model,
  twoTowers,
} from '../test/unit/inference/rocs/models.ts';
import type { BenchRow } from './run.ts';

const CANDIDATES = [64, 256, 1_024];
/** Candidates of sixteen requests. */
const MIXED = [1, 2, 3, 5, 8, 12, 16, 20, 25, 32, 40, 50, 64, 100, 150, 200];
const SEQUENCE = 128;
const MEASURE_MS = 1_500;
/** The share of the closed form that is asked for from 256 candidates. */
const CLOSED_FORM_SHARE = 0.7;

interface Subject {
  name: string;
  model: Model;
  /** What sharing can give at most, of the given model's requests/s, at N candidates. */
  closedForm?: (candidates: number) => number;
  /** Whether many small requests in one call are measured. */
  together?: boolean;
  /** What the shared form must reach: of the given one (a), of the one with copies (b). */
  targets?: { overGiven?: number; overCopies?: number };
}

/** S(N) = 1 / ((1−ρ)² + ρ/N) for square layers of which the request has the share ρ of the columns. */
function crossSpeedup(request: number, candidate: number): (candidates: number) => number {
  const share = request / (request + candidate);
  return (candidates) => 1 / ((1 - share) ** 2 + share / candidates);
}

function subjects(): Subject[] {
  return [
    {
      name: 'masked DCNv2 384/128, 3 layers',
      together: true,
      model: crossNetwork(384, 128, 3),
      closedForm: crossSpeedup(384, 128),
    },
    {
      name: 'masked DCNv2 256/256, 3 layers',
      model: crossNetwork(256, 256, 3),
      closedForm: crossSpeedup(256, 256),
    },
    { name: 'two towers 512/128', model: twoTowers(512, 128, 128), targets: { overGiven: 3, overCopies: 1 } },
    {
      name: 'cross attention over 128 rows, 2 layers',
      model: deepCrossAttention(SEQUENCE, 64, 2, 4, true),
      targets: { overCopies: 1.5 },
    },
  ];
}

/** Requests/s of one set of weights in its forms: as it was given (a), with copies (b), shared (c), on an artefact that is there (d). */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const rows: BenchRow[] = [];
  for (const subject of subjects()) {
    const { graph, groups } = subject.model;
    const forms = await openForms(graph, groups, { strict: true });
    const random = seededRandom(1).stream(subject.name);
    await verifyForms(forms, graph, groups, random);
    rows.push(...(await rowsOf(subject, forms, random)));
    if (subject.together === true) rows.push(await togetherRow(subject, forms, random));
    await forms.close();
  }
  return { rows };
}

async function rowsOf(subject: Subject, forms: Forms, random: { next(): number }): Promise<BenchRow[]> {
  const { graph, groups } = subject.model;
  const measured = await measureForms(forms, graph, groups, {
    random,
    clock: systemClock(),
    candidates: CANDIDATES,
    sequence: SEQUENCE,
    measureMs: MEASURE_MS,
  });
  return measured.flatMap((each) => [...plainRows(subject, each), ...ratioRows(subject, each)]);
}

async function togetherRow(
  { name, model }: Subject,
  forms: Forms,
  random: { next(): number },
): Promise<BenchRow> {
  const trial = { random, clock: systemClock(), sequence: SEQUENCE, measureMs: MEASURE_MS };
  const value = await measureTogether(forms, model.graph, model.groups, MIXED, trial);
  return {
    metric: `${name}, 16 requests of 1 to 200 candidates, one call / a call each`,
    value,
    unit: '×',
    ...atLeast(1.6),
  };
}

function plainRows({ name }: Subject, { candidates, ...forms }: Throughput): BenchRow[] {
  const named = {
    naive: 'given (a)',
    copies: 'copies (b)',
    shared: 'shared (c)',
    candidate: 'on an artefact (d)',
  };
  return (Object.keys(named) as (keyof typeof named)[]).map((form) => ({
    metric: `${name}, N = ${candidates}, ${named[form]}`,
    value: forms[form],
    unit: 'requests/s',
  }));
}

function ratioRows(
  { name, closedForm, targets }: Subject,
  { candidates, naive, copies, shared }: Throughput,
): BenchRow[] {
  const label = `${name}, N = ${candidates}`;
  const isBig = candidates >= 256;
  const rows: BenchRow[] = [
    { metric: `${label}, (c) / (a)`, value: shared / naive, unit: '×', ...atLeast(targets?.overGiven) },
    {
      metric: `${label}, (c) / (b)`,
      value: shared / copies,
      unit: '×',
      ...atLeast(isBig ? targets?.overCopies : undefined),
    },
  ];
  if (closedForm === undefined) return rows;
  const value = (shared / naive / closedForm(candidates)) * 100;
  return [
    ...rows,
    {
      metric: `${label}, of the closed form`,
      value,
      unit: '%',
      ...atLeast(isBig ? CLOSED_FORM_SHARE * 100 : undefined),
    },
  ];
}

function atLeast(target: number | undefined): Partial<BenchRow> {
  return target === undefined ? {} : { target, relation: '>=' };
}
