import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dealWorkers } from '../../../../src/core/routing/deal-workers.ts';

const speed = fc.oneof(fc.constantFrom(1, 2, 4), fc.double({ min: 0.1, max: 8, noNaN: true }));

describe('dealWorkers', () => {
  it('deals by falling speed, each to the router that owns least', () => {
    expect(dealWorkers([1, 4, 2, 4, 2, 1], [7, 3])).toEqual([3, 3, 3, 7, 7, 7]);
    expect(dealWorkers([4, undefined, 1], [0, 1])).toEqual([0, undefined, 1]);
    expect(dealWorkers([1, 1], [])).toEqual([undefined, undefined]);
  });

  it('gives every worker that is there to a router that is there, alike for all who ask', () => {
    const routers = fc.uniqueArray(fc.nat({ max: 20 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        fc.array(fc.option(speed, { nil: undefined }), { maxLength: 40 }),
        routers,
        (speeds, there) => {
          const owners = dealWorkers(speeds, there);
          expect(owners.length).toBe(speeds.length);
          owners.forEach((owner, worker) => {
            if (speeds[worker] === undefined) expect(owner).toBeUndefined();
            else expect(there).toContain(owner);
          });
          expect(dealWorkers(speeds, there.toReversed())).toEqual(owners);
        },
      ),
    );
  });

  it('leaves no router with less than another by more than one worker', () => {
    fc.assert(
      fc.property(
        fc.array(speed, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        (speeds, count) => {
          const routers = Array.from({ length: count }, (_, router) => router);
          const owned = routers.map(() => 0);
          dealWorkers(speeds, routers).forEach((owner, worker) => {
            if (owner !== undefined) owned[owner] = (owned[owner] ?? 0) + (speeds[worker] ?? 0);
          });
          expect(Math.max(...owned) - Math.min(...owned)).toBeLessThanOrEqual(Math.max(...speeds) + 1e-9);
        },
      ),
    );
  });
});
