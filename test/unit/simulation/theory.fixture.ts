import { type Distribution, meanOf, secondMomentRatio } from '../../../src/simulation/engine/draws.ts';

/** Student's t at 97.5 %, for 19 degrees of freedom (20 seeds). */
const T_19 = 2.093;

/** Whether a value lies in the 95 % interval of the mean of 20 independent figures. */
export function within95(figures: readonly number[]): (value: number) => boolean {
  if (figures.length !== 20) throw new RangeError(`the interval is for 20 figures, not ${figures.length}`);
  const mean = figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
  const variance = figures.reduce((sum, figure) => sum + (figure - mean) ** 2, 0) / (figures.length - 1);
  return (value) => Math.abs(value - mean) <= T_19 * Math.sqrt(variance / figures.length);
}

/**
 * The wait before service in M/M/k (Erlang 1917): with probability C(k, kρ) exponential with mean 1 / (kμ − λ), else none.
 *
 * @param load ρ, of the whole
 */
export function erlangWait(
  servers: number,
  load: number,
  serviceMs: number,
): { meanMs: number; quantileMs(q: number): number } {
  const offered = servers * load;
  // Erlang B by its recursion, which never overflows; C from B.
  let blocked = 1;
  for (let k = 1; k <= servers; k++) blocked = (offered * blocked) / (k + offered * blocked);
  const waiting = blocked / (1 - load * (1 - blocked));
  const drainMs = serviceMs / (servers * (1 - load));
  return {
    meanMs: waiting * drainMs,
    quantileMs: (q) => Math.max(0, drainMs * Math.log(waiting / (1 - q))),
  };
}

/** The mean wait before service in M/G/1 (Pollaczek 1930, Khinchine 1932): λ E[S²] / 2(1 − ρ). */
export function pollaczekKhinchineWaitMs(load: number, service: Distribution): number {
  return (load * meanOf(service) * secondMomentRatio(service)) / (2 * (1 - load));
}
