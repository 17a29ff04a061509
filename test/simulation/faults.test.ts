import { describe, expect, it } from 'vitest';
import { FAULTS, type Fault, SEVERAL } from './faults.ts';
import { runFault } from './run-fault.ts';

const SEEDS = 20;

async function expectGood(fault: Fault, seed: number): Promise<void> {
  const { told, violations } = await runFault(fault, seed).catch((error: unknown) => {
    throw new Error(`${fault.name}, seed ${seed}: ${String(error)}`, { cause: error });
  });
  expect(violations, told).toEqual([]);
}

describe('whatever happens, every request ends once, and no commit goes past unfinished work', () => {
  it.each([...FAULTS, SEVERAL])('$name', async (fault) => {
    for (let seed = 1; seed <= SEEDS; seed += 1) await expectGood(fault, seed);
  });
});

describe('a pool that is lost', () => {
  it('is stood in for by the leaf’s fallback while it is away, and no longer', async () => {
    const fault = FAULTS.find(({ name }) => name.startsWith('all workers of a pool die'));
    if (fault === undefined) throw new Error('there is no such fault');
    for (let seed = 1; seed <= 5; seed += 1) {
      const { installation } = await runFault(fault, seed);
      const fallbacks = installation.auditor.results.map(({ fallback }) => fallback);
      const standIns = fallbacks.filter((why) => why?.startsWith('no live worker of') === true);
      expect(standIns.length, `seed ${seed}`).toBeGreaterThan(3);
      expect(standIns.length, `seed ${seed}`).toBeLessThan(fallbacks.length);
    }
  });
});
