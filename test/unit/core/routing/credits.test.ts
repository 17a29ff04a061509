import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Credits } from '../../../../src/core/routing/credits.ts';

interface Scene {
  perMs: number;
  hopMs: number;
  batch: number;
  durationMs: number;
  /** Acknowledgements leave together, so often. */
  ackEveryMs?: number;
}

/** A worker that serves `perMs` requests in batches, a hop of `hopMs` away on either side; the router sends whenever it may. */
function simulate(options: Scene): {
  served: number;
  worstQueueMs: number;
  limit: number;
} {
  const credits = new Credits(10_000, 0);
  credits.observe(options.batch, options.batch / options.perMs, 1);
  const acks: { atMs: number; sentMs: number; sojournMs: number }[] = [];
  let freeAtMs = 0;
  let served = 0;
  let worstQueueMs = 0;
  for (let nowMs = 0; nowMs < options.durationMs; nowMs += 0.25) {
    while ((acks[0]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs) {
      const ack = acks.shift();
      if (ack !== undefined) credits.completed(nowMs - ack.sentMs, ack.sojournMs, nowMs);
      served += 1;
    }
    while (credits.available(nowMs)) {
      credits.dispatched();
      const arrivesMs = nowMs + options.hopMs;
      freeAtMs = Math.max(freeAtMs, arrivesMs) + 1 / options.perMs;
      worstQueueMs = nowMs > options.durationMs / 2 ? Math.max(worstQueueMs, freeAtMs - arrivesMs) : 0;
      const { ackEveryMs = 0 } = options;
      const leavesMs = ackEveryMs === 0 ? freeAtMs : Math.ceil(freeAtMs / ackEveryMs) * ackEveryMs;
      acks.push({ atMs: leavesMs + options.hopMs, sentMs: nowMs, sojournMs: freeAtMs - arrivesMs });
    }
  }
  return { served, worstQueueMs, limit: credits.limit(options.durationMs) };
}

describe('credits', () => {
  it.each([
    { perMs: 1, hopMs: 5, batch: 4, durationMs: 10_000 },
    { perMs: 5, hopMs: 3, batch: 16, durationMs: 10_000 },
    { perMs: 0.3, hopMs: 8, batch: 1, durationMs: 20_000 },
  ])('keep a saturated worker busy and its queue short: %o', (options) => {
    const { served, worstQueueMs } = simulate(options);
    expect(served).toBeGreaterThan(0.9 * options.perMs * options.durationMs);
    // Half the round trip's worth of service, two batches, and what one window of rate can be wrong by.
    expect(worstQueueMs).toBeLessThan(options.hopMs + (4 * options.batch + 4) / options.perMs);
  });

  it.each([
    { perMs: 5, hopMs: 2, batch: 16, durationMs: 10_000, ackEveryMs: 12 },
    { perMs: 2, hopMs: 3, batch: 4, durationMs: 10_000, ackEveryMs: 15 },
  ])(
    'keep it busy where acknowledgements come in bursts, so that most take longer than the first: %o',
    (options) => {
      expect(simulate(options).served).toBeGreaterThan(0.9 * options.perMs * options.durationMs);
    },
  );

  it('give a queue in the topic no more than 4 times the shortest way', () => {
    const credits = new Credits(10_000, 0);
    credits.observe(4, 1, 1);
    credits.completed(5, 0, 0);
    for (let nowMs = 1; nowMs < 5_000; nowMs += 1) credits.completed(1_000, 0, nowMs);
    expect(credits.limit(5_000)).toBeLessThanOrEqual(4 * 5 + 1 + 4 + 1);
    expect(credits.limit(5_000)).toBeGreaterThanOrEqual(4 * 5);
  });

  it('do not creep: a minute of saturation leaves the limit where ten seconds did', () => {
    const short = simulate({ perMs: 1, hopMs: 5, batch: 4, durationMs: 10_000 });
    const long = simulate({ perMs: 1, hopMs: 5, batch: 4, durationMs: 60_000 });
    expect(long.limit).toBeLessThanOrEqual(short.limit + 2);
  });

  /** One completion each ms, of the same round trip; the limit after that. */
  const limitOf = (
    roundTripMs: number,
    sojournMs: number,
    batch = 4,
    serviceMs = 0,
    cap = 10_000,
    routers = 1,
  ): number => {
    const credits = new Credits(cap, 0);
    credits.observe(batch, serviceMs, routers);
    for (let nowMs = 0; nowMs <= 5_000; nowMs += 1) credits.completed(roundTripMs, sojournMs, nowMs);
    return credits.limit(5_000);
  };

  it('share the batch among the routers of the slot, each at least 1 of it, and at least 2 in all', () => {
    expect(limitOf(30, 10, 16) - limitOf(30, 10, 16, 0, 10_000, 4)).toBe(12);
    expect(limitOf(30, 10, 16) - limitOf(30, 10, 16, 0, 10_000, 3)).toBe(10);
    expect(limitOf(30, 10, 16) - limitOf(30, 10, 16, 0, 10_000, 1_000)).toBe(15);
    const idle = new Credits(10_000, 0);
    idle.observe(64, 1, 1_000);
    expect(idle.limit(0)).toBe(2);
  });

  it('cover the way, the service and one batch', () => {
    // A rate that was measured is near the true one.
    expect([24, 25]).toContain(limitOf(30, 10));
    expect(limitOf(30, 10, 16) - limitOf(30, 10)).toBe(12);
    expect([100, 101]).toContain(limitOf(30, 10, 4, 100) - limitOf(30, 10));
  });

  it.each([
    ['more than the way took of a worker', limitOf(5, 50, 4, 10), limitOf(50, 50, 4, 10)],
    ['a worker without a batch', limitOf(30, 10, 0), limitOf(30, 10, 1)],
    ['a service time below nothing', limitOf(30, 10, 4, -15), limitOf(30, 10, 4, 0)],
    ['a cap below 2', limitOf(30, 10, 4, 0, 1), 1],
  ])('bear %s', (_, limit, expected) => {
    expect(limit).toBe(expected);
  });

  it('forget a long way within a second', () => {
    const credits = new Credits(10_000, 0);
    for (let nowMs = 0; nowMs <= 3_000; nowMs += 1)
      credits.completed(nowMs >= 1_000 && nowMs < 1_100 ? 30 : 10, 0, nowMs);
    expect([11, 12]).toContain(credits.limit(3_000));
  });

  it('are used up at the limit', () => {
    const credits = new Credits(10, 0);
    const available = [0, 1, 2].map(() => {
      const before = credits.available(0);
      credits.dispatched();
      return before;
    });
    expect([credits.limit(0), ...available]).toEqual([2, true, true, false]);
  });

  it('are at least 2, never above the cap, and never counted below 0', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('dispatch', 'complete', 'release'), { maxLength: 200 }),
        fc.integer({ min: 2, max: 50 }),
        (steps, cap) => {
          const credits = new Credits(cap, 0);
          steps.forEach((step, nowMs) => {
            if (step === 'dispatch') credits.dispatched();
            else if (step === 'complete') credits.completed(10, 2, nowMs);
            else credits.released();
            expect(credits.outstanding).toBeGreaterThanOrEqual(0);
            expect(credits.limit(nowMs)).toBeGreaterThanOrEqual(2);
            expect(credits.limit(nowMs)).toBeLessThanOrEqual(cap);
          });
        },
      ),
    );
  });
});
