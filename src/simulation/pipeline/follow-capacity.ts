import type { CapacityChange, SimulatedPool } from '../fleet/simulated-fleet.ts';
import type { SimulatedStages } from './simulated-stages.ts';

/**
 * Lets pools have the workers that the fleet gives them over time, from now on. The highest slots go first. A worker that is told drains as on SIGTERM
 * until its time is up, and is then killed; one that is not told is killed.
 */
export function followCapacity(stages: SimulatedStages, pools: readonly SimulatedPool[]): void {
  for (const pool of pools) {
    for (const change of pool.capacity) {
      stages.clock.after(Math.max(0, change.atMs - change.noticeMs), () => tell(stages, pool, change));
      stages.clock.after(change.atMs, () => apply(stages, pool, change));
    }
  }
}

function tell(stages: SimulatedStages, pool: SimulatedPool, { slots, noticeMs }: CapacityChange): void {
  if (noticeMs === 0) return;
  for (let slot = slots; slot < pool.slots; slot += 1) stages.dismiss(pool.pool, slot);
}

function apply(stages: SimulatedStages, pool: SimulatedPool, { slots }: CapacityChange): void {
  // One that was told and is not gone by now goes the hard way.
  for (let slot = slots; slot < pool.slots; slot += 1) stages.kill(pool.pool, slot);
  for (let slot = 0; slot < slots; slot += 1)
    if (!stages.isUp(pool.pool, slot)) stages.startWorker(pool, slot);
}
