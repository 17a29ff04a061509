import { type ModelWanted, type PoolsOf, servesModel, type TargetWanted } from './choose.ts';
import type { FleetState } from './fleet-state.ts';

/** What one leaf sends where. */
export interface LeafModels {
  readonly target: TargetWanted;
  readonly models: readonly ModelWanted[];
}

/**
 * Versions that leaves name and that no live worker of the leaf's classes can run, in sentences. A leaf whose classes have no live worker at all
 * says nothing of versions.
 */
export function missingModels(
  fleet: FleetState,
  poolsOf: PoolsOf,
  leaves: Iterable<LeafModels>,
  nowMs: number,
): string[] {
  const missing = new Set<string>();
  for (const { target, models } of leaves) {
    const classes = [target.accelerator, ...target.fallback];
    const live = classes
      .flatMap(poolsOf)
      .flatMap((pool) => fleet.slotsOf(pool))
      .filter((slot) => fleet.isLive(slot, nowMs));
    if (live.length === 0) continue;
    for (const model of models) {
      if (live.some((slot) => servesModel(slot, model))) continue;
      missing.add(`no live worker of ${classes.join(', ')} can run ${model.family}@${model.version}`);
    }
  }
  return [...missing];
}
