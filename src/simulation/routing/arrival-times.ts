import type { Generator } from '../../core/random/generator.ts';
import { drawExponential } from '../engine/draws.ts';
import type { Arrivals } from './scenario.ts';

/** The next arrival after a time, ms. */
export type NextArrival = (afterMs: number) => number;

/** @param ratePerMs arrivals on the whole, bursts and all */
export function arrivalTimes(arrivals: Arrivals, ratePerMs: number, random: Generator): NextArrival {
  switch (arrivals.kind) {
    case 'poisson':
      return (afterMs) => afterMs + drawExponential(random, 1 / ratePerMs);
    case 'bursts':
      return burstTimes(arrivals, ratePerMs, random);
  }
}

/** A Poisson process of two states, each of which lasts exponentially long (MMPP-2). */
function burstTimes(
  { factor, onMs, offMs }: Extract<Arrivals, { kind: 'bursts' }>,
  ratePerMs: number,
  random: Generator,
): NextArrival {
  const calmRate = (ratePerMs * (onMs + offMs)) / (factor * onMs + offMs);
  let isBurst = false;
  let untilMs = drawExponential(random, offMs);
  return (afterMs) => {
    let fromMs = afterMs;
    for (;;) {
      const atMs = fromMs + drawExponential(random, 1 / (isBurst ? factor * calmRate : calmRate));
      if (atMs < untilMs) return atMs;
      // No memory: what is left of a time between arrivals is drawn anew at the new rate.
      fromMs = untilMs;
      isBurst = !isBurst;
      untilMs = fromMs + drawExponential(random, isBurst ? onMs : offMs);
    }
  };
}
