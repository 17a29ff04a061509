import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planTiles } from '../../../../src/inference/rocs/tile-plan.ts';

describe('tiles of candidates', () => {
  test('requests of about one size have a tile each', () => {
    const plan = planTiles([0n, 1n, 0n, 1n, 0n], 2);
    expect(plan).toMatchObject({ tiles: 2, slots: 3, requests: BigInt64Array.of(0n, 1n) });
    expect(plan.slotOf).toEqual(BigInt64Array.of(0n, 3n, 1n, 4n, 2n));
  });

  test('one long request does not pad the others', () => {
    const requestOf = [...new Array(200).fill(0n), 1n, 2n, 3n, 4n];
    const plan = planTiles(requestOf, 5);
    expect(plan.slots).toBe(32);
    expect(plan.tiles).toBe(7 + 4);
  });

  test('no candidates, no tiles', () => {
    expect(planTiles([], 3)).toMatchObject({ tiles: 0, slots: 1 });
  });

  test('each candidate has a slot of its own in a tile of its request', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 400 }), (requests) => {
        const plan = planTiles(requests.map(BigInt), 10);
        expect(new Set(plan.slotOf).size).toBe(requests.length);
        requests.forEach((request, candidate) => {
          const slot = Number(plan.slotOf[candidate]);
          expect(plan.candidates[slot]).toBe(BigInt(candidate));
          expect(plan.requests[Math.floor(slot / plan.slots)]).toBe(BigInt(request));
        });
      }),
    );
  });
});
