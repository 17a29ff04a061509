import { type Memory, TuningLoop } from './tuning-domains.ts';

const HOUR_MS = 3_600_000;
const PERIODS_PER_HOUR = 20;
/** The controller runs for so long without a restart. */
const HOURS_PER_RUN = 50;

/** What happens without any real change: the traffic's day, bursts of 20 s, and hiccups of 2 s in one domain after the other. */
const LIVELY = {
  traffic: (nowMs: number): number =>
    (1 + 0.25 * Math.sin((2 * Math.PI * nowMs) / (24 * HOUR_MS))) *
    (nowMs % (17 * 60_000) < 20_000 ? 1.6 : 1),
  slowdown: (memory: Memory, nowMs: number): number => {
    const isTurn = Math.floor(nowMs / (5 * 60_000)) % 2 === (memory === 'hbm' ? 0 : 1);
    return isTurn && nowMs % (5 * 60_000) < 2_000 ? 3 : 1;
  },
};

export interface Noise {
  readonly hours: number;
  /** In how many of them there was a step. */
  readonly hoursWithSteps: number;
  readonly reasons: readonly string[];
}

/** The controller beside lively traffic in which nothing ever changes for good. */
export function runNoise({ hours, seed, load }: { hours: number; seed: number; load: number }): Noise {
  // Without a step the effects of one are always the same.
  const fixedEffects = new TuningLoop({ seed, load }).run(1).effects();
  const found = new Set<string>();
  const reasons: string[] = [];
  for (let done = 0; done < hours; done += HOURS_PER_RUN) {
    const periods = Math.min(HOURS_PER_RUN, hours - done) * PERIODS_PER_HOUR;
    const loop = new TuningLoop({ seed: seed + done, load, fixedEffects, ...LIVELY }).run(periods);
    for (const { period, event } of loop.steps()) {
      found.add(`${done} ${Math.floor(period / PERIODS_PER_HOUR)}`);
      reasons.push(event.reason);
    }
  }
  return { hours, hoursWithSteps: found.size, reasons };
}

if (import.meta.main) {
  const [hours = 1_000, load = 0.6, seed = 1] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify({ load, seed, ...runNoise({ hours, seed, load }) }));
}
