import type { Clock } from '../../ports/clock.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import type { InputGroups } from './compile.ts';
import type { Forms, PreparedBatch } from './forms.ts';
import { trialBatch } from './trial-batch.ts';

/** Requests per second of each form, one request in a call; the median of calls. */
export interface Throughput {
  candidates: number;
  naive: number;
  copies: number;
  shared: number;
  /** The candidate's graph alone, on an artefact that is there. */
  candidate: number;
}

export interface Trial {
  random: { next(): number };
  clock: Pick<Clock, 'monotonicMs'>;
  candidates?: readonly number[];
  /** Rows of sequences. */
  sequence?: number;
  /** How long each form is run at each size. */
  measureMs?: number;
}

const CANDIDATES = [64, 256, 1_024];
const SEQUENCE = 32;
const MEASURE_MS = 300;
const CALLS_MIN = 7;
const WARM_UP_CALLS = 3;
/**
 * How long one form is run before the next has its turn. Short, so that whatever else the machine does falls on all of them; not call by call,
 * since a form of many copies empties the caches of what the next one would find there in service.
 */
const TURN_MS = 50;

/** Runs the forms in turn on the same made-up requests. */
export async function measureForms(
  forms: Forms,
  graph: OnnxGraph,
  groups: InputGroups,
  { random, clock, candidates = CANDIDATES, sequence = SEQUENCE, measureMs = MEASURE_MS }: Trial,
): Promise<Throughput[]> {
  const measured: Throughput[] = [];
  for (const count of candidates) {
    const sizes = { requests: 1, requestOf: new Array<number>(count).fill(0), sequence };
    const batch = forms.prepare(trialBatch(graph, groups, sizes, random));
    const artefact = await forms.run.artefact(batch);
    const { run } = forms;
    const calls = [
      () => run.naive(batch),
      () => run.copies(batch),
      () => run.shared(batch),
      () => run.candidate(batch, artefact),
    ];
    const [naive = 0, copies = 0, shared = 0, candidate = 0] = await inTurn(
      calls,
      clock,
      measureMs * calls.length,
    );
    measured.push({ candidates: count, naive, copies, shared, candidate });
  }
  return measured;
}

/** How many times as fast one call for several requests is as a call for each of them. */
export async function measureTogether(
  forms: Forms,
  graph: OnnxGraph,
  groups: InputGroups,
  counts: readonly number[],
  { random, clock, sequence = SEQUENCE, measureMs = MEASURE_MS }: Trial,
): Promise<number> {
  const batchOf = (some: readonly number[]): PreparedBatch => {
    const requestOf = some.flatMap((count, request) => new Array<number>(count).fill(request));
    return forms.prepare(trialBatch(graph, groups, { requests: some.length, requestOf, sequence }, random));
  };
  const together = batchOf(counts);
  const alone = counts.map((count) => batchOf([count]));
  const calls = [
    () => forms.run.shared(together),
    async () => {
      for (const batch of alone) await forms.run.shared(batch);
    },
  ];
  const [one = 0, each = 0] = await inTurn(calls, clock, measureMs * calls.length);
  return one / each;
}

/** Calls per second of each. The first call of a turn is not counted: it finds the caches as the form before left them. */
async function inTurn(
  calls: readonly (() => Promise<unknown>)[],
  clock: Pick<Clock, 'monotonicMs'>,
  measureMs: number,
): Promise<number[]> {
  for (let n = 0; n < WARM_UP_CALLS; n += 1) for (const call of calls) await call();
  const times: number[][] = calls.map(() => []);
  const endMs = clock.monotonicMs() + measureMs;
  while (clock.monotonicMs() < endMs || times.some((each) => each.length < CALLS_MIN)) {
    for (const [n, call] of calls.entries()) {
      await call();
      times[n]?.push(...(await timed(call, clock)));
    }
  }
  return times.map((each) => 1_000 / median(each));
}

/** What each call of one turn took, ms. */
async function timed(call: () => Promise<unknown>, clock: Pick<Clock, 'monotonicMs'>): Promise<number[]> {
  const times: number[] = [];
  const untilMs = clock.monotonicMs() + TURN_MS;
  do {
    const startedMs = clock.monotonicMs();
    await call();
    times.push(clock.monotonicMs() - startedMs);
  } while (clock.monotonicMs() < untilMs);
  return times;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
