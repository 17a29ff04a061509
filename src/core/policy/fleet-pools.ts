import { MillraceError } from '../errors.ts';
import type { CapacityClass, Fleet } from './fleet.ts';

/** Accelerator class → its pools, dedicated ones first. */
export function poolsOf(fleet: Fleet): (accelerator: string) => readonly string[] {
  const pools = new Map(
    [...fleet.accelerators].map(([name, accelerator]) => [
      name,
      [...accelerator.pools]
        .sort((a, b) => Number(b.capacityClass === 'dedicated') - Number(a.capacityClass === 'dedicated'))
        .map((pool) => pool.pool),
    ]),
  );
  return (accelerator) => pools.get(accelerator) ?? [];
}

export interface PoolOfFleet {
  pool: string;
  accelerator: string;
  capacityClass: CapacityClass;
  simulated: boolean;
}

/** Every pool of the fleet with the accelerator class that it is of. */
export function fleetPools(fleet: Fleet): PoolOfFleet[] {
  return [...fleet.accelerators].flatMap(([accelerator, { pools }]) =>
    pools.map((pool) => ({ ...pool, accelerator })),
  );
}

/** @throws MillraceError INVALID_CONFIG where the fleet has no such pool */
export function poolOf(fleet: Fleet, name: string): PoolOfFleet {
  const pools = fleetPools(fleet);
  const found = pools.find(({ pool }) => pool === name);
  if (found !== undefined) return found;
  throw new MillraceError('INVALID_CONFIG', 'the fleet has no such pool', {
    value: name,
    allowed: pools.map(({ pool }) => pool).join(', '),
  });
}
