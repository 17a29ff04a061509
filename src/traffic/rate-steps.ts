import type { RandomStream } from '../ports/random.ts';
import type { Arrival } from './arrivals.ts';
import type { RequestShape } from './request-maker.ts';

/** A stretch of time with one rate. */
export interface RateStep {
  readonly lengthMs: number;
  readonly perSecond: number;
}

export interface Bursts {
  readonly everyMs: number;
  readonly lengthMs: number;
  readonly factor: number;
}

export interface Wave {
  readonly periodMs: number;
  /** 0 … 1: how far the rate goes above its mean, and below. */
  readonly depth: number;
}

/** A wave is followed in so many steps. */
const WAVE_STEPS = 200;

/** A rate with a wave (a day), and bursts in the middle of each of their periods; on average, over whole periods of both, it is `perSecond`. */
export function* shapedRate(
  perSecond: number,
  { wave, bursts }: { wave?: Wave | undefined; bursts?: Bursts | undefined },
): Generator<RateStep, never, void> {
  const burstShare = bursts === undefined ? 0 : bursts.lengthMs / bursts.everyMs;
  const calm = perSecond / (1 + burstShare * ((bursts?.factor ?? 1) - 1));
  const waveStepMs = wave === undefined ? Number.POSITIVE_INFINITY : wave.periodMs / WAVE_STEPS;
  for (let atMs = 0; ; ) {
    const inBurst = bursts === undefined ? undefined : burstAt(atMs, bursts);
    const waveIndex = Math.floor(atMs / waveStepMs + 1e-9);
    const waveLeftMs = wave === undefined ? Number.POSITIVE_INFINITY : (waveIndex + 1) * waveStepMs - atMs;
    const lengthMs = Math.min(waveLeftMs, inBurst?.leftMs ?? Number.POSITIVE_INFINITY);
    const waveFactor =
      wave === undefined ? 1 : 1 + wave.depth * Math.sin((2 * Math.PI * (waveIndex + 0.5)) / WAVE_STEPS);
    yield {
      lengthMs,
      perSecond: calm * waveFactor * (inBurst?.isBurst === true ? (bursts?.factor ?? 1) : 1),
    };
    atMs += lengthMs;
  }
}

function burstAt(atMs: number, { everyMs, lengthMs }: Bursts): { isBurst: boolean; leftMs: number } {
  const beginMs = (everyMs - lengthMs) / 2;
  const intoMs = atMs % everyMs;
  const edgeMs = [beginMs, beginMs + lengthMs, everyMs].find((edge) => edge - intoMs > 1e-6) ?? everyMs;
  const isBurst = intoMs > beginMs - 1e-6 && intoMs < beginMs + lengthMs - 1e-6;
  return { isBurst, leftMs: edgeMs - intoMs };
}

/**
 * Poisson arrivals at a rate that changes by steps, exactly: of each arrival one exponential draw is spent as the rate passes (the time change of an
 * inhomogeneous process). Ends where the steps end.
 */
export function* poissonArrivals(
  steps: Iterable<RateStep>,
  random: RandomStream,
  shapes: Iterator<RequestShape>,
): Generator<Arrival, void, void> {
  let wanted = -Math.log(1 - random.next());
  let sinceMs = 0;
  for (const { lengthMs, perSecond } of steps) {
    const perMs = perSecond / 1_000;
    let leftMs = lengthMs;
    // Infinity times 0 is no number.
    while (perMs > 0 && wanted <= perMs * leftMs) {
      const waitMs = wanted / perMs;
      const shape = shapes.next();
      if (shape.done === true) return;
      yield { afterMs: sinceMs + waitMs, shape: shape.value };
      leftMs -= waitMs;
      sinceMs = 0;
      wanted = -Math.log(1 - random.next());
    }
    if (leftMs === Number.POSITIVE_INFINITY) return;
    wanted -= perMs * leftMs;
    sinceMs += leftMs;
  }
}
