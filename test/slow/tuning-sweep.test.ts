import { expect, it } from 'vitest';
import { SWEPT, sweep } from '../simulation/tuning-sweep.ts';

// In virtual time, with as many requests as production's settings take. More seeds: node test/simulation/tuning-sweep.ts 1 200
it.each(SWEPT)('the tuning of the whole pipeline: $name', { timeout: 600_000 }, async (swept) => {
  expect(await sweep(swept, 1, 3)).toBe(0);
});
