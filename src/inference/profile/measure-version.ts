import type { BatchProfile, TargetProfile, VersionProfile } from '../../core/profile/profile.ts';
import { type CostSample, costError, fitCost } from '../../core/signals/fit-cost.ts';
import { timesInTurns } from '../times-in-turns.ts';
import { compareSparse } from './compare-sparse.ts';
import { gridOf, largestFitting, type ShapeGrid, shapesOf } from './grid.ts';
import type { ItemShape } from './made-item.ts';
import {
  computeMs,
  kernelsOf,
  type Measuring,
  MS_MIN,
  rounded,
  type Target,
  usualRows,
} from './measuring.ts';

/** Of the time: fitting a cost model is the most of it. */
const SHARES = { targets: 0.5, batches: 0.1, sparse: 0.4 };

/** Requests of a batch, and candidates of each. */
const [BATCHES, CANDIDATES] = [[1, 4, 16, 64], 32];

/**
 * What a version takes on an accelerator: a request alone by each kernel and memory domain, over a grid of shapes; batches; and where the sparse
 * kernel overtakes the dense one. Times are those on the accelerator, as workers measure them: packing and queueing are not in them.
 */
export async function measureVersion(measuring: Measuring): Promise<VersionProfile> {
  const { version, model } = measuring;
  const { family, version: number, digest, synthetic, typicalRows, limits } = version;
  return {
    ...{ family, version: number, digest, synthetic, typicalRows, candidatesMax: limits.candidatesMax },
    targets: await measureTargets(measuring),
    batches: await measureBatches(measuring),
    sparse: await compareSparse(measuring, SHARES.sparse * measuring.measureMs),
    refusedKernels: Object.fromEntries(model.refusedKernels ?? []),
  };
}

function targetsOf(measuring: Measuring): Target[] {
  const { memories } = measuring.capabilities;
  return kernelsOf(measuring).flatMap((kernel) => memories.map((memory) => ({ kernel, memory })));
}

async function measureTargets(measuring: Measuring): Promise<TargetProfile[]> {
  const { fit, heldOut } = gridOf(measuring.version.limits, measuring.items);
  const targets = targetsOf(measuring);
  const profiles: TargetProfile[] = [];
  for (const target of targets) {
    const ms = (SHARES.targets * measuring.measureMs) / targets.length;
    profiles.push(await measureTarget(measuring, target, { fit, heldOut, measureMs: ms }));
  }
  return profiles;
}

async function measureTarget(
  measuring: Measuring,
  target: Target,
  { fit, heldOut, measureMs }: { fit: ShapeGrid; heldOut: ShapeGrid; measureMs: number },
): Promise<TargetProfile> {
  const [fitted, others] = [shapesOf(fit), shapesOf(heldOut)];
  const calls = [...fitted, ...others].map((shape) => callOf(measuring, target, [shape]));
  const { times } = await timesInTurns(calls, { clock: measuring.clock, measureMs });
  const samples = [...fitted, ...others].map(
    (shape, n): CostSample => ({ ...shape, ms: rounded(Math.max(times[n] ?? 0, MS_MIN)) }),
  );
  const [shapes, held] = [samples.slice(0, fitted.length), samples.slice(fitted.length)];
  const features = measuring.items.hasSequence ? ['1', 'N', 'T', 'N*T'] : ['1', 'N'];
  const coefficients = fitCost(features, shapes).map(rounded);
  const { median, p95 } = costError(features, coefficients, held);
  return {
    ...target,
    ...{ features, coefficients },
    ...{ medianRelativeError: rounded(median), p95RelativeError: rounded(p95) },
    ...{ shapes, heldOut: held },
  };
}

async function measureBatches(measuring: Measuring): Promise<BatchProfile[]> {
  const { items, clock, measureMs, version } = measuring;
  const [target] = targetsOf(measuring);
  if (target === undefined) return [];
  const rows = usualRows(measuring);
  const candidates = Math.min(CANDIDATES, largestFitting(version.limits, items, rows));
  const batches = BATCHES.map((requests) => ({ requests, candidates }));
  const calls = batches.map((batch) =>
    callOf(measuring, target, new Array<ItemShape>(batch.requests).fill({ candidates, rows })),
  );
  const { times } = await timesInTurns(calls, { clock, measureMs: SHARES.batches * measureMs });
  return batches.map((batch, n) => ({ ...target, ...batch, ms: rounded(times[n] ?? 0) }));
}

function callOf({ model, items }: Measuring, target: Target, shapes: readonly ItemShape[]) {
  const batch = shapes.map((shape) => items.make(shape));
  return () => computeMs(model, batch, target);
}
