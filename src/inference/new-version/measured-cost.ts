import { arch, availableParallelism } from 'node:os';
import { env } from 'onnxruntime-node';
import { type CostError, type CostSample, costError, fitCost } from '../../core/signals/fit-cost.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import type { GraphSession } from './graph-session.ts';
import { feedsTogether, madeRequest } from './made-request.ts';
import { type InputPlan, isSequenceInput } from './planned-input.ts';

export interface Measured {
  readonly graph: OnnxGraph;
  readonly plan: InputPlan;
  readonly made: GraphSession;
  readonly candidatesMax: number;
  readonly rowsMax: number;
  readonly random: { next(): number };
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** About how long to measure. */
  readonly measureMs: number;
}

export interface MeasuredCost {
  readonly features: readonly string[];
  readonly coefficients: readonly number[];
  readonly error: CostError;
  readonly grid: {
    readonly N: readonly number[];
    readonly T: readonly number[];
    readonly heldOutN: readonly number[];
    readonly heldOutT: readonly number[];
    readonly rounds: number;
    readonly runs: number;
  };
}

const FIT = { N: [1, 4, 16, 64, 128, 256, 512, 1_024], T: [1, 8, 32, 64] };
const HELD_OUT = { N: [2, 8, 32, 96, 192, 384, 768], T: [4, 16, 48] };
/** A clock may not tell two moments apart. */
const MS_MIN = 1e-6;
const RUNS = 5;
const ROUNDS_MAX = 9;

/** What one request alone costs on this machine, by its candidates and the rows of its sequences, fitted to measured calls of the version's graph. */
export async function measuredCost(measured: Measured): Promise<MeasuredCost> {
  const hasSequence = measured.plan.inputs.some(isSequenceInput);
  const fit = gridWithin(FIT, measured, hasSequence);
  const heldOut = gridWithin(HELD_OUT, measured, hasSequence);
  const shapes = [...shapesOf(fit), ...shapesOf(heldOut)];
  const { times, rounds, runs } = await timesOf(measured, shapes);
  const samples = shapes.map((shape, n): CostSample => ({ ...shape, ms: Math.max(times[n] ?? 0, MS_MIN) }));
  const fitted = samples.slice(0, shapesOf(fit).length);
  const features = hasSequence ? ['1', 'N', 'T', 'N*T'] : ['1', 'N'];
  const coefficients = fitCost(features, fitted).map((value) => Number(value.toPrecision(4)));
  return {
    features,
    coefficients,
    error: costError(features, coefficients, samples.slice(fitted.length)),
    grid: { ...fit, heldOutN: heldOut.N, heldOutT: heldOut.T, rounds, runs },
  };
}

type Grid = { N: number[]; T: number[] };

function gridWithin(grid: Grid, { candidatesMax, rowsMax }: Measured, hasSequence: boolean): Grid {
  const within = (sizes: readonly number[], max: number): number[] => {
    const kept = sizes.filter((size) => size <= max);
    return kept.length > 0 ? kept : [max];
  };
  return { N: within(grid.N, candidatesMax), T: hasSequence ? within(grid.T, rowsMax) : [0] };
}

function shapesOf({ N, T }: Grid): { candidates: number; rows: number }[] {
  return N.flatMap((candidates) => T.map((rows) => ({ candidates, rows })));
}

/**
 * By shape, ms: the median of a round's calls, in the fastest of the rounds. What neighbours take of a machine changes over seconds, so rounds go over
 * all shapes in turn, and the fastest is the one that had it to itself.
 */
async function timesOf(
  { graph, plan, made, random, clock, measureMs }: Measured,
  shapes: readonly { candidates: number; rows: number }[],
): Promise<{ times: number[]; rounds: number; runs: number }> {
  const calls = shapes.map((shape) => {
    const request = madeRequest(graph, plan, shape, random);
    return feedsTogether(plan, [request], new Array<number>(shape.candidates).fill(0), () => 0);
  });
  const times = new Array<number>(shapes.length).fill(Number.POSITIVE_INFINITY);
  const firstMs = clock.monotonicMs();
  for (const feeds of calls) await made.run(feeds);
  const startedMs = clock.monotonicMs();
  const runs = Math.max(1, Math.min(RUNS, Math.floor(measureMs / (startedMs - firstMs))));
  let rounds = 0;
  while (rounds === 0 || (rounds < ROUNDS_MAX && clock.monotonicMs() - startedMs < measureMs)) {
    for (const [n, feeds] of calls.entries()) {
      await made.run(feeds);
      const taken: number[] = [];
      for (let run = 0; run < runs; run += 1) {
        const callMs = clock.monotonicMs();
        await made.run(feeds);
        taken.push(clock.monotonicMs() - callMs);
      }
      times[n] = Math.min(times[n] ?? Number.POSITIVE_INFINITY, median(taken));
    }
    rounds += 1;
  }
  return { times, rounds, runs };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** cost.json, format 1. */
export function costText(
  { family, version }: { family: string; version: number },
  { features, coefficients, error, grid }: MeasuredCost,
): string {
  const cost = {
    format: 1,
    family,
    version,
    unit: 'ms',
    features,
    coefficients,
    medianRelativeError: Number(error.median.toFixed(4)),
    p95RelativeError: Number(error.p95.toFixed(4)),
    grid: { B: 1, ...grid },
    machine: `${arch()}, ${availableParallelism()} cores, onnxruntime ${env.versions.node ?? ''}, time of 1 thread`,
  };
  return `${JSON.stringify(cost, null, 2)}\n`;
}
