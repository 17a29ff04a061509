import { arch, availableParallelism } from 'node:os';
import { env } from 'onnxruntime-node';
import { type CostError, type CostSample, costError, fitCost } from '../../core/signals/fit-cost.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import { type TimesInTurns, timesInTurns } from '../times-in-turns.ts';
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

/** What neighbours take of the machine is left out as far as can be (`timesInTurns`). */
function timesOf(
  { graph, plan, made, random, clock, measureMs }: Measured,
  shapes: readonly { candidates: number; rows: number }[],
): Promise<TimesInTurns> {
  const calls = shapes.map((shape) => {
    const request = madeRequest(graph, plan, shape, random);
    const feeds = feedsTogether(plan, [request], new Array<number>(shape.candidates).fill(0), () => 0);
    return async () => {
      const callMs = clock.monotonicMs();
      await made.run(feeds);
      return clock.monotonicMs() - callMs;
    };
  });
  return timesInTurns(calls, { clock, measureMs });
}

/** cost.json, format 1. @param machine for people: what it was measured on */
export function costText(
  { family, version }: { family: string; version: number },
  {
    features,
    coefficients,
    error,
    grid,
    typicalRows,
  }: Omit<MeasuredCost, 'grid'> & { grid: Partial<MeasuredCost['grid']>; typicalRows?: number },
  machine = `${arch()}, ${availableParallelism()} cores, onnxruntime ${env.versions.node ?? ''}, time of 1 thread`,
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
    ...(typicalRows === undefined ? {} : { typicalRows }),
    grid: { B: 1, ...grid },
    machine,
  };
  return `${JSON.stringify(cost, null, 2)}\n`;
}
