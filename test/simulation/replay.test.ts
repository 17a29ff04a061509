import { expect, it } from 'vitest';
import { SEVERAL } from './faults.ts';
import { runFault } from './run-fault.ts';

it('the same seed stores the same bytes at the same moments, faults and all', async () => {
  const digests: string[] = [];
  for (const seed of [3, 4, 5, 3, 4, 5]) {
    const { installation } = await runFault(SEVERAL, seed);
    digests.push(`${installation.auditor.digest()} ${installation.clock.monotonicMs()}`);
  }
  expect(digests.slice(3)).toEqual(digests.slice(0, 3));
  expect(new Set(digests).size).toBe(3);
});
