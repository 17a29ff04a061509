import type { RandomStream } from '../ports/random.ts';
import type { RequestShape } from './request-maker.ts';

/** A request to come: so many milliseconds after the one before it. */
export interface Arrival {
  afterMs: number;
  shape: RequestShape;
}

export interface GeneratorOptions {
  /** Mean rate, requests per second. */
  ratePerSecond: number;
  /** Every so often a burst: `factor` times the rate for `lengthMs`. */
  burst?: { everyMs: number; lengthMs: number; factor: number };
  candidatesMax: number;
  historyRowsMax: number;
}

/** Poisson arrivals with bursts on top, the mean rate kept; sizes are log-uniform, so that small requests are common and big ones exist. */
export function* generatedArrivals(
  options: GeneratorOptions,
  random: RandomStream,
): Generator<Arrival, never, void> {
  const { burst } = options;
  const share = burst === undefined ? 0 : burst.lengthMs / burst.everyMs;
  const calmPerMs = options.ratePerSecond / 1_000 / (1 + share * ((burst?.factor ?? 1) - 1));
  let timeMs = 0;
  for (;;) {
    const inBurst = burst !== undefined && isBurst(timeMs, burst);
    const perMs = inBurst ? calmPerMs * burst.factor : calmPerMs;
    const afterMs = -Math.log(1 - random.next()) / perMs;
    timeMs += afterMs;
    yield {
      afterMs,
      shape: {
        candidates: logUniform(8, options.candidatesMax, random),
        historyRows: random.below(options.historyRowsMax + 1),
      },
    };
  }
}

/** In the middle of each period, so that a short run begins calmly. */
function isBurst(timeMs: number, { everyMs, lengthMs }: { everyMs: number; lengthMs: number }): boolean {
  const intoMs = (timeMs % everyMs) - (everyMs - lengthMs) / 2;
  return intoMs >= 0 && intoMs < lengthMs;
}

function logUniform(least: number, most: number, random: RandomStream): number {
  return Math.round(least * (most / least) ** random.next());
}
