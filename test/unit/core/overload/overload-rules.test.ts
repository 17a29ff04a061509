import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_CUT, type OverloadOrder } from '../../../../src/core/overload/overload-order.ts';
import { OverloadQueue } from '../../../../src/core/overload/overload-queue.ts';
import { OverloadRules } from '../../../../src/core/overload/overload-rules.ts';
import type { PricedWork } from '../../../../src/core/overload/priced-work.ts';
import { work } from './work.fixture.ts';

const SLA_MS = 100;
const SERVERS = 10;

/** Ten servers that were asked for `load` times what they can do, for two seconds, and have work queued for 60 ms each. */
function overloaded(order: OverloadOrder, load: number, arriving: (index: number) => PricedWork) {
  const rules = new OverloadRules({ order, slaMs: SLA_MS, expectedThroughput: SERVERS }, 0);
  let index = 0;
  for (let nowMs = 10; nowMs <= 2_000; nowMs += 10) {
    for (let offeredMs = 0; offeredMs < load * SERVERS * 10; ) {
      const next = arriving(index);
      rules.arrive(next, nowMs);
      offeredMs += next.extras.reduce((sum, { costMs }) => sum + costMs, next.base.costMs);
      index += 1;
    }
    rules.complete(SERVERS * 10, SERVERS * 10);
    rules.sample({ queuedMs: 600, eligibleMs: 600, idled: false }, nowMs);
  }
  return { rules, nowMs: 2_000 };
}

/** Densities of the baseline from 0.5 to 1.5 per ms. */
const spread = (index: number): PricedWork =>
  work({ base: { costMs: 6, value: 3 + ((index * 7) % 61) / 10 } });

describe('the rules of overload', () => {
  it('lets everything in and runs it in full while the wait is short', () => {
    const rules = new OverloadRules({ order: 'strict', slaMs: SLA_MS, expectedThroughput: SERVERS }, 0);
    rules.sample({ queuedMs: 290, eligibleMs: 290, idled: true }, 10);
    const worthless = work({ base: { costMs: 6, value: 0 } });
    expect(rules.arrive(worthless, 10)).toBe('admit');
    expect(rules.start(worthless, 10)).toEqual({ run: true, extras: 1 });
    expect(rules.report(10)).toMatchObject({
      isOverloaded: false,
      isSaturated: false,
      isBaselineShed: false,
    });
  });

  it('stays in overload while much waits, though a high cut leaves nothing eligible', () => {
    const { rules, nowMs } = overloaded('strict', 2, spread);
    rules.sample({ queuedMs: 600, eligibleMs: 0, idled: false }, nowMs + 10);
    expect(rules.report(nowMs + 10).isOverloaded).toBe(true);
    rules.sample({ queuedMs: 200, eligibleMs: 200, idled: false }, nowMs + 20);
    expect(rules.report(nowMs + 20)).toMatchObject({ isOverloaded: false, cut: NO_CUT });
  });

  it.each([
    ['lower', 0, 1],
    ['higher', 1_000, -1],
  ])('cuts %s where %d ms of eligible work wait', (_, eligibleMs, sign) => {
    const { rules, nowMs } = overloaded('strict', 2, spread);
    const before = rules.cut.lnDensity;
    rules.sample({ queuedMs: 1_000, eligibleMs, idled: true }, nowMs);
    expect(Math.sign(before - rules.cut.lnDensity)).toBe(sign);
  });

  it('cuts where the densest that arrives fills what the servers do', () => {
    const { rules } = overloaded('strict', 2, spread);
    const { cut, isOverloaded } = rules.report(2_000);
    expect(isOverloaded).toBe(true);
    // 0.6 of twice the load is base work; of it 0.8 / 1.2 is paid for, with the cap at 1 + (20 - 60) / 200.
    expect(cut.tier).toBe(5);
    expect(Math.exp(cut.lnDensity)).toBeCloseTo(0.5 + 1 / 3, 1);
  });

  it('refuses an arrival below half of the density at the cut, and sends an enhanced one on', () => {
    const { rules, nowMs } = overloaded('strict', 2, spread);
    const { cut } = rules;
    const at = (share: number): PricedWork =>
      work({ base: { costMs: 6, value: 6 * share * Math.exp(cut.lnDensity) }, deadlineMs: nowMs + SLA_MS });
    expect([at(1.01), at(0.51), at(0.49)].map((each) => rules.arrive(each, nowMs))).toEqual([
      'admit',
      'admit',
      'reject',
    ]);
    expect([at(1.01), at(0.99)].map((each) => rules.isEligible(each))).toEqual([true, false]);
    expect(rules.arrive({ ...at(9), isEnhanced: true }, nowMs)).toBe('reroute');
  });

  it.each([
    ['a higher priority, however little it is worth', { priority: 4 }, 0.001, 'admit'],
    ['a lower priority, however much', { priority: 6 }, 1_000, 'reject'],
  ])('takes base work by priority before density: %s', (_, fields, value, arrival) => {
    const { rules, nowMs } = overloaded('strict', 2, spread);
    expect(rules.arrive(work({ ...fields, base: { costMs: 6, value } }), nowMs)).toBe(arrival);
  });

  it.each([
    ['expired', 0, { run: false, reason: 'expired' }],
    ['too late for its base by the margin of 1.3', 7.7, { run: false, reason: 'cannot finish' }],
    ['in time for its base alone', 7.9, { run: true, extras: 0 }],
    ['not in time for its extras, by the margin', 12.9, { run: true, extras: 0 }],
  ] as const)('at the start, work that is %s', (_, leftMs, start) => {
    const { rules, nowMs } = overloaded('one-price', 2, () => work());
    const dense = { costMs: 4, value: 1_000 };
    expect(rules.start(work({ deadlineMs: nowMs + leftMs, extras: [dense] }), nowMs)).toEqual(start);
    expect(rules.start(work({ deadlineMs: nowMs + 13.1, extras: [dense] }), nowMs)).toEqual({
      run: true,
      extras: 1,
    });
  });

  it('runs the steps of extras that are at or above the price, and none behind the first below', () => {
    const { rules, nowMs } = overloaded('one-price', 2, spread);
    const price = Math.exp(rules.cut.lnDensity);
    const extras = [1.2, 1.01, 0.9, 5].map((share) => ({ costMs: 2, value: 2 * share * price }));
    expect(rules.start(work({ deadlineMs: nowMs + SLA_MS, extras }), nowMs)).toEqual({
      run: true,
      extras: 2,
    });
  });

  it('keeps at most a twentieth of optional work below the cut while no baseline is shed, and says that it cuts', () => {
    // Base work is 0.6 of the load; the cap of 0.8 leaves room for the denser extras only.
    const extra = (index: number): PricedWork =>
      work({ deadlineMs: 1e9, extras: [{ costMs: 4, value: index % 2 === 0 ? 2 : 1 }] });
    const { rules, nowMs } = overloaded('strict', 1.1, extra);
    let kept = 0;
    for (let index = 0; index < 1_000; index += 1) {
      const start = rules.start(extra(1), nowMs);
      if (start.run) kept += start.extras;
    }
    expect(kept).toBeGreaterThanOrEqual(45);
    expect(kept).toBeLessThanOrEqual(50);
    expect(rules.report(nowMs)).toMatchObject({ isSaturated: true, isBaselineShed: false });
    rules.start(work({ deadlineMs: nowMs + 1 }), nowMs);
    expect(rules.report(nowMs).isBaselineShed).toBe(true);
    for (let index = 0; index < 100; index += 1)
      expect(rules.start(extra(1), nowMs)).toEqual({ run: true, extras: 0 });
  });

  it('in strict order never serves an extra under a cut that refuses base work', () => {
    const anyWork = fc.record({
      costMs: fc.integer({ min: 1, max: 20 }),
      value: fc.integer({ min: 0, max: 20 }),
      priority: fc.integer({ min: 0, max: 9 }),
      extraValue: fc.integer({ min: 0, max: 200 }),
    });
    let refusedInAll = 0;
    let extrasInAll = 0;
    fc.assert(
      fc.property(
        fc.array(anyWork, { minLength: 50, maxLength: 200 }),
        fc.integer({ min: 1, max: 12 }),
        (mix, perTick) => {
          const rules = new OverloadRules({ order: 'strict', slaMs: SLA_MS, expectedThroughput: 2 }, 0);
          const queue = new OverloadQueue<PricedWork>(rules);
          for (let tick = 1; tick <= 100; tick += 1) {
            const nowMs = tick * 10;
            let refused = 0;
            let extras = 0;
            for (let each = 0; each < perTick; each += 1) {
              const drawn = mix[(tick * perTick + each) % mix.length];
              if (drawn === undefined) continue;
              const { costMs, value, priority, extraValue } = drawn;
              const asked = work({
                deadlineMs: nowMs + SLA_MS,
                priority,
                base: { costMs, value },
                extras: [{ costMs, value: extraValue }],
              });
              if (queue.push(asked, nowMs) === 'reject') refused += 1;
            }
            for (let leftMs = 20; leftMs > 0; ) {
              const started = queue.next(nowMs, () => {});
              if (started === undefined) break;
              const doneMs = started.work.base.costMs * (1 + started.extras);
              leftMs -= doneMs;
              extras += started.extras;
              queue.complete(doneMs, doneMs);
            }
            if (refused > 0) expect(extras).toBe(0);
            refusedInAll += refused;
            extrasInAll += extras;
            queue.tick(nowMs);
          }
        },
      ),
    );
    // Else it was no overload, or nothing but one.
    expect(refusedInAll).toBeGreaterThan(1_000);
    expect(extrasInAll).toBeGreaterThan(1_000);
  });
});
