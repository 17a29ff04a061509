import { listNames, MillraceError } from '../../core/errors.ts';
import type { AvailabilityRow } from '../../traffic/import/spot-availability-json.ts';
import type { SimulatedFleet } from './simulated-fleet.ts';

/**
 * The fleet with a pool whose workers are there while so many instances can be had, up to its slots; what goes away is killed. It takes the place of
 * what the fleet file says of the pool's capacity.
 * @throws MillraceError INVALID_CONFIG where the fleet has no such pool
 */
export function withAvailability(
  fleet: SimulatedFleet,
  pool: string,
  rows: readonly AvailabilityRow[],
): SimulatedFleet {
  if (!fleet.pools.some((each) => each.pool === pool))
    throw new MillraceError('INVALID_CONFIG', 'the fleet has no such pool', {
      value: pool,
      allowed: listNames(fleet.pools.map((each) => each.pool)),
    });
  return {
    ...fleet,
    pools: fleet.pools.map((each) => {
      if (each.pool !== pool) return each;
      const capacity = rows.map(({ atMs, instances }) => ({
        atMs,
        slots: Math.min(each.slots, instances),
        noticeMs: 0,
      }));
      return { ...each, capacity };
    }),
  };
}
