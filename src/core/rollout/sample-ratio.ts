import { logGamma } from './log-gamma.ts';

/**
 * Always-valid test that the canary gets the share of the requests that was declared, up to a slack. Immutable; its state is plain JSON.
 */
export interface SampleRatio {
  /** Declared share of the canary, 0 … 1. */
  readonly share: number;
  /** Factor by which the odds of the canary may be off, ≥ 1. */
  readonly slack: number;
  readonly canary: number;
  readonly stable: number;
}

/** A mismatch is called at this level: wrong at most once in 1 000 rollouts. */
export const SAMPLE_RATIO_LEVEL = 0.001;

/**
 * Sticky keys make clusters of requests: under Zipf traffic the share of the requests is off by 8 % (standard deviation, of 100 000
 * keys without the 50 heaviest) although the keys were drawn perfectly, and a test that counts requests as independent would be wrong
 * every time. Requests that draw their own arm have only the seconds after a change of the percentage, when routers disagree.
 */
export const SAMPLE_RATIO_SLACK = { bucketKey: 2, requestId: 1.25 } as const;

export function startSampleRatio(percent: number, slack: number): SampleRatio {
  return { share: percent / 100, slack, canary: 0, stable: 0 };
}

export function addAssignments(test: SampleRatio, canary: number, stable: number): SampleRatio {
  return { ...test, canary: test.canary + canary, stable: test.stable + stable };
}

/**
 * log E: the multinomial e-process of Lindon & Malek (Anytime-valid inference for multinomial count data, 2020) for two arms, with a
 * uniform prior, against the likeliest share within the slack, which can only lower it.
 */
export function logEOfSampleRatio(test: SampleRatio): number {
  const { canary, stable } = test;
  const requests = canary + stable;
  if (requests === 0) return 0;
  const [low, high] = allowedShares(test);
  const share = Math.min(Math.max(canary / requests, low), high);
  const logMixture = logGamma(canary + 1) + logGamma(stable + 1) - logGamma(requests + 2);
  return logMixture - logPower(share, canary) - logPower(1 - share, stable);
}

export function isSampleRatioOff(test: SampleRatio): boolean {
  return logEOfSampleRatio(test) >= -Math.log(SAMPLE_RATIO_LEVEL);
}

function allowedShares({ share, slack }: SampleRatio): [number, number] {
  return [share / (share + slack * (1 - share)), (slack * share) / (slack * share + (1 - share))];
}

/** log(base^count), where nothing happened is certain whatever the base. */
function logPower(base: number, count: number): number {
  return count === 0 ? 0 : count * Math.log(base);
}
