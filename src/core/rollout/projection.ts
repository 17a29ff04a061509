import { own } from '../own.ts';
import {
  firstServing,
  type ModelWanted,
  type PoolsOf,
  scoreOf,
  type TargetWanted,
} from '../routing/choose.ts';
import type { FleetState } from '../routing/fleet-state.ts';

/** What a pool that should work and has nobody who could is said to have: far over any bound, and still a number. */
export const NO_WORKER_UTILISATION = 1_000;

/**
 * Milliseconds from a dispatch made now to its result, as the router scores slots: expected wait plus service on the best slot of the first class
 * that can serve; whether that has a credit just now plays no part. `undefined` where nobody can serve it.
 */
export function predictLatencyMs(
  fleet: FleetState,
  poolsOf: PoolsOf,
  target: TargetWanted,
  model: ModelWanted,
  predictedMs: number,
  nowMs: number,
): number | undefined {
  const serving = firstServing(fleet, poolsOf, target, model, nowMs);
  if (serving === undefined) return undefined;
  let best = Number.POSITIVE_INFINITY;
  for (const slot of serving.slots) best = Math.min(best, scoreOf(slot, predictedMs, nowMs));
  return best;
}

/** Whether two predictions for one request differ by more than a share of the stable one's; one that can be served and one that cannot always do. */
export function isApart(
  stableMs: number | undefined,
  candidateMs: number | undefined,
  shareMin: number,
): boolean {
  if (stableMs === undefined || candidateMs === undefined) return stableMs !== candidateMs;
  return Math.abs(candidateMs - stableMs) > shareMin * stableMs;
}

/** Predicted work, ms at speed 1, that one leaf got in a window. */
export interface LeafWork {
  readonly target: TargetWanted;
  readonly workMs: number;
}

/**
 * Utilisation of each pool, 0 …, if the work of a window went where its leaves send it: work per second over what the live workers behind the
 * pool's slots do in a second. A worker counts once, however many slots it has. Within a class the pools share by what they can do; work of a
 * class without live workers falls to its fallbacks.
 */
export function projectUtilisation(
  fleet: FleetState,
  poolsOf: PoolsOf,
  work: Iterable<LeafWork>,
  windowMs: number,
  nowMs: number,
): Record<string, number> {
  const capacities = new Map<string, number>();
  const capacityOf = (pool: string): number => {
    let capacity = capacities.get(pool);
    if (capacity === undefined) {
      capacity = liveCapacity(fleet, pool, nowMs);
      capacities.set(pool, capacity);
    }
    return capacity;
  };
  const utilisation: Record<string, number> = {};
  for (const { target, workMs } of work) {
    if (!(workMs > 0) || !(windowMs > 0)) continue;
    const classes = [target.accelerator, ...target.fallback].map((accelerator) => poolsOf(accelerator));
    const pools = classes.find((some) => some.some((pool) => capacityOf(pool) > 0));
    if (pools === undefined) {
      for (const pool of classes[0] ?? []) utilisation[pool] = NO_WORKER_UTILISATION;
      continue;
    }
    const capacity = pools.reduce((sum, pool) => sum + capacityOf(pool), 0);
    for (const pool of pools)
      if (capacityOf(pool) > 0)
        utilisation[pool] = (own(utilisation, pool) ?? 0) + workMs / windowMs / capacity;
  }
  return utilisation;
}

/** Predicted work, ms at speed 1, that the pool does in a millisecond: the speed of a worker is what it was seen to do while busy. */
function liveCapacity(fleet: FleetState, pool: string, nowMs: number): number {
  const speeds = new Map<string, number>();
  for (const slot of fleet.slotsOf(pool)) {
    if (!fleet.isLive(slot, nowMs)) continue;
    const { worker, speed } = slot.status;
    speeds.set(worker, speed > 0 ? speed : 1);
  }
  let capacity = 0;
  for (const speed of speeds.values()) capacity += speed;
  return capacity;
}
