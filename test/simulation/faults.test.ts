import { describe, expect, it } from 'vitest';
import { FAULTS, type Fault, SEVERAL } from './faults.ts';
import { runFault } from './run-fault.ts';

const SEEDS = 20;

async function expectGood(fault: Fault, seed: number): Promise<void> {
  let violations: readonly string[];
  try {
    ({ violations } = await runFault(fault, seed));
  } catch (error) {
    throw new Error(`fault "${fault.name}", seed ${seed}: ${String(error)}`, { cause: error });
  }
  expect(violations, `fault "${fault.name}", seed ${seed}; replay: runFault(fault, ${seed})`).toEqual([]);
}

describe('whatever happens, every request ends once, and no commit goes past unfinished work', () => {
  it.each([...FAULTS, SEVERAL])('$name', async (fault) => {
    for (let seed = 1; seed <= SEEDS; seed += 1) await expectGood(fault, seed);
  });
});
