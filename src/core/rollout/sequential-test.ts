import { MillraceError } from '../errors.ts';

/** A family of alternatives to one null, and the e-value that decides for them. */
export interface TestFamily {
  readonly null: number;
  readonly alternatives: readonly number[];
  readonly threshold: number;
}

/** Is the canary's event rate more than 1.1 × the control's? Wrong at most once in 100, however often one looks. */
export const HARM: TestFamily = { null: 1.1, alternatives: [1.25, 1.5, 2, 3, 5, 10, 20], threshold: 100 };

/** Is it less than 1.5 × the control's? Wrong at most once in 20 per stage. */
export const SAFE: TestFamily = { null: 1.5, alternatives: [0.5, 0.8, 1, 1.1, 1.2], threshold: 20 };

/** Mixture e-process for the ratio of the event rates of two arms, in log space. Immutable; its state is plain JSON. */
export interface RatioTest {
  readonly null: number;
  readonly alternatives: readonly number[];
  /** Per alternative: log of its likelihood ratio to the null. Always finite. */
  readonly logE: readonly number[];
}

export interface RatioWindow {
  /** The canary's realised share of the analysed requests, 0 … 1. */
  readonly exposure: number;
  readonly canaryEvents: number;
  readonly controlEvents: number;
}

export function startRatioTest(nullRatio: number, alternatives: readonly number[]): RatioTest {
  return { null: nullRatio, alternatives, logE: alternatives.map(() => 0) };
}

/**
 * With θ(ρ) = w·ρ / (w·ρ + 1 − w) for exposure w, S canary and F control events multiply the likelihood ratio of each alternative
 * ρ_k to the null ρ_0 by [θ(ρ_k)/θ(ρ_0)]^S · [(1−θ(ρ_k))/(1−θ(ρ_0))]^F. The terms of a window with one arm only cancel: it says nothing about a ratio.
 * @throws MillraceError MALFORMED for counts or an exposure that cannot be, such as canary events at exposure 0.
 */
export function addWindow(test: RatioTest, window: RatioWindow): RatioTest {
  checkWindow(window);
  const { exposure: w, canaryEvents, controlEvents } = window;
  const events = canaryEvents + controlEvents;
  if (events === 0) return test;
  const nullRate = w * test.null + (1 - w);
  const logE = test.logE.map((before, k) => {
    const ratio = test.alternatives[k] ?? test.null;
    // θ(ρ_k)/θ(ρ_0) is (ρ_k/ρ_0)·q and its counterpart for the control is q = (w·ρ_0 + 1 − w) / (w·ρ_k + 1 − w).
    const logQ = Math.log(nullRate / (w * ratio + (1 - w)));
    return before + canaryEvents * Math.log(ratio / test.null) + events * logQ;
  });
  return { ...test, logE };
}

/** log E: the mean over the alternatives, of which each has the same weight. */
export function logEValue(test: RatioTest): number {
  return logMeanExp(test.logE);
}

/** E: evidence against the null. At most once in `threshold` rollouts does it ever reach `threshold` where the null is true (Ville). */
export function eValue(test: RatioTest): number {
  return Math.exp(logEValue(test));
}

/** log of the mean of exp(x), where exp(x) itself may not be a number that fits. A mean of e-values is an e-value. */
export function logMeanExp(logs: readonly number[]): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (const log of logs) if (log > largest) largest = log;
  if (!Number.isFinite(largest)) return largest;
  let sum = 0;
  for (const log of logs) sum += Math.exp(log - largest);
  return largest + Math.log(sum / logs.length);
}

function checkWindow({ exposure, canaryEvents, controlEvents }: RatioWindow): void {
  if (!(exposure >= 0 && exposure <= 1))
    throw new MillraceError('MALFORMED', 'An exposure is not a share', { value: exposure, allowed: '0 … 1' });
  checkCount('canaryEvents', canaryEvents);
  checkCount('controlEvents', controlEvents);
  if ((exposure === 0 && canaryEvents > 0) || (exposure === 1 && controlEvents > 0))
    throw new MillraceError('MALFORMED', 'An arm without requests has events', {
      value: { exposure, canaryEvents, controlEvents },
    });
}

/** @throws MillraceError MALFORMED unless the count is an integer from 0 on. */
export function checkCount(name: string, count: number): void {
  if (!Number.isSafeInteger(count) || count < 0)
    throw new MillraceError('MALFORMED', `${name} is not a count`, { value: count, allowed: 'integers ≥ 0' });
}
