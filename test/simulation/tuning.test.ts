import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../../src/core/policy/parse.ts';
import { DEFAULT_TUNING } from '../../src/core/tuning/tuning-terms.ts';
import { type LoopOptions, type Memory, type Pools, TuningLoop } from './tuning-domains.ts';
import { runNoise } from './tuning-noise.ts';

const { periodMs } = DEFAULT_TUNING;
const HOME = 65_536;
/** Periods of the trouble: it begins with the eleventh. */
const FROM = 10;
const TO = 24;

/** One domain's kernels take twice as long, all at once, and some time later no longer do. */
function trouble(memory: Memory | 'both', from = FROM, to = TO): NonNullable<LoopOptions['slowdown']> {
  return (domain, nowMs) =>
    (memory === 'both' || domain === memory) && nowMs >= from * periodMs && nowMs < to * periodMs ? 2 : 1;
}

/** How often a step went against the one before. */
function turns(loop: TuningLoop, from: number, to: number): number {
  const directions = loop
    .steps()
    .filter(({ period }) => period > from && period <= to)
    .map(({ event }) => event.direction);
  return directions.filter((direction, index) => index > 0 && direction !== directions[index - 1]).length;
}

const cases = (['two', 'one'] as Pools[]).flatMap((pools) =>
  (['hbm', 'l2'] as Memory[]).flatMap((memory) => [1, 2].map((seed) => ({ pools, memory, seed }))),
);

describe('a sudden doubling of one domain’s latency', () => {
  it.each(cases)('is answered ($memory, $pools pool(s), seed $seed)', ({ pools, memory, seed }) => {
    const loop = new TuningLoop({ seed, pools, slowdown: trouble(memory) }).run(70);
    const steps = loop.steps();
    const [first] = steps;
    // Two periods of it are seen, and then one step moves at least a tenth of the domain's traffic, in the very next period.
    expect(first).toMatchObject({
      period: FROM + 2,
      event: { kind: 'away', direction: memory === 'hbm' ? 'up' : 'down' },
    });
    expect(loop.reports[FROM + 2]?.moved[memory]).toBeGreaterThanOrEqual(0.1);
    // No oscillation for as long as it lasts, which is more than ten periods.
    expect(turns(loop, FROM, TO)).toBe(0);
    // And back, exactly, for good.
    expect(loop.value).toBe(HOME);
    expect(parsePolicy(loop.text).tuned.size).toBe(0);
    expect(steps.at(-1)?.period).toBeLessThan(60);
    expect(turns(loop, FROM, 70)).toBe(1);
  });

  it.each([0.25, 0.5, 0.75])('is answered within two whole periods when it begins at %d of one', (phase) => {
    const loop = new TuningLoop({ seed: 3, slowdown: trouble('hbm', FROM + phase, TO) }).run(14);
    const atPeriod = loop.steps()[0]?.period ?? Number.POSITIVE_INFINITY;
    expect(atPeriod - (FROM + phase)).toBeLessThanOrEqual(3 - phase);
    expect(atPeriod).toBeGreaterThanOrEqual(FROM + 2);
  });

  it('takes more periods where the author’s step moves less than a tenth', () => {
    const loop = new TuningLoop({ seed: 1, step: '10%', slowdown: trouble('hbm') }).run(16);
    const moved = loop.reports.map((report) => report.moved.hbm);
    expect(moved[FROM + 2]).toBeGreaterThan(0.03);
    expect(moved[FROM + 2]).toBeLessThan(0.1);
    expect(moved[FROM + 4]).toBeGreaterThan(0.1);
  });

  it('takes at most one step per period', () => {
    const loop = new TuningLoop({ seed: 1, step: '5%', slowdown: trouble('hbm') }).run(40);
    const periods = loop.steps().map(({ period }) => period);
    expect(new Set(periods).size).toBe(periods.length);
    expect(periods.length).toBeGreaterThan(6);
  });

  it('is left to run its course where both domains have it', () => {
    const loop = new TuningLoop({ seed: 1, load: 0.3, slowdown: trouble('both') }).run(40);
    expect(loop.steps()).toEqual([]);
  });

  it('waits while a rollout is in canary or ramp', () => {
    const rollout: LoopOptions['rollout'] = (period) =>
      period <= 8 || period > 17 ? 'none' : period <= 14 ? 'canary' : 'ramp';
    const loop = new TuningLoop({ seed: 1, slowdown: trouble('hbm', FROM, 40), rollout }).run(22);
    expect(loop.steps()[0]?.period).toBe(19);
  });

  it('is not answered again soon after a person undid the step', () => {
    const afterPeriod = (loop: TuningLoop): void => {
      if (loop.reports.length === FROM + 3) loop.publish('hbm-floor', HOME);
    };
    const loop = new TuningLoop({ seed: 1, slowdown: trouble('hbm', FROM, 60), afterPeriod }).run(FROM + 34);
    expect(
      loop
        .steps()
        .map(({ period }) => period)
        .filter((period) => period > FROM + 3),
    ).toEqual([]);
  });

  it('that comes and goes makes ever fewer turns', () => {
    const periodsEach = 8;
    const flapping: LoopOptions['slowdown'] = (domain, nowMs) =>
      domain === 'hbm' && nowMs >= FROM * periodMs && Math.floor(nowMs / periodMs / periodsEach) % 2 === 1
        ? 2
        : 1;
    const loop = new TuningLoop({ seed: 1, slowdown: flapping }).run(FROM + 192);
    const early = turns(loop, FROM, FROM + 64);
    const late = turns(loop, FROM + 128, FROM + 192);
    expect(early).toBeGreaterThan(1);
    expect(late).toBeLessThan(early);
  });
});

describe('without a real change', () => {
  // 1 000 hours: node test/simulation/tuning-noise.ts 1000 0.6
  it('takes no step in 30 lively hours', () => {
    expect(runNoise({ hours: 30, seed: 1, load: 0.6 })).toEqual({
      hours: 30,
      hoursWithSteps: 0,
      reasons: [],
    });
  });
});
