import { describe, expect, it } from 'vitest';
import { addWindow, logEValue, startRatioTest } from '../../../../src/core/rollout/sequential-test.ts';
import {
  isStillSlow,
  logEOfRecovery,
  logEOfSuspicion,
  recover,
  suspect,
} from '../../../../src/core/tuning/domain-evidence.ts';
import type {
  DomainObservation,
  LatencySummary,
  Metric,
} from '../../../../src/core/tuning/tuning-observation.ts';
import type { TrailStep } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING as TERMS, WORSE } from '../../../../src/core/tuning/tuning-terms.ts';
import { HBM, L2 } from './tuning.fixture.ts';

/** So many requests, and which share of them took longer than usual; by metric where they differ. */
function domain(count: number, slow: number | Readonly<Record<Metric, number>>): DomainObservation {
  const of = (metric: Metric): LatencySummary => {
    const share = typeof slow === 'number' ? slow : slow[metric];
    return { count, p50Ms: 1, p90Ms: 2, p99Ms: 3, over: Math.round(share * count) };
  };
  const latency = { queue: of('queue'), kernel: of('kernel'), endToEnd: of('endToEnd') };
  return { pool: 'a100', memory: 'hbm', requests: count, simulated: false, utilisation: 0.5, latency };
}

const compared = { domain: HBM, others: [L2] };
const logEOf = (hbm: DomainObservation, l2: DomainObservation): number | undefined => {
  const evidence = suspect(undefined, compared, { [HBM]: hbm, [L2]: l2 }, TERMS);
  return evidence && logEOfSuspicion(evidence);
};

describe('evidence that a domain degrades', () => {
  it.each<[string, DomainObservation, DomainObservation, boolean]>([
    ['twice as many are slow as is usual', domain(900, 0.2), domain(900, 0.1), true],
    ['hardly fewer than twice as many are', domain(900, 0.19), domain(900, 0.1), false],
    ['it has few requests', domain(199, 0.5), domain(900, 0.1), false],
    ['those that would take its traffic have few', domain(900, 0.5), domain(199, 0.1), false],
    [
      'only its queue is longer',
      domain(900, { queue: 0.4, kernel: 0.1, endToEnd: 0.1 }),
      domain(900, 0.1),
      true,
    ],
  ])('is there where %s', (_, hbm, l2, isThere) => {
    expect(logEOf(hbm, l2) !== undefined).toBe(isThere);
  });

  it('is no stronger for a busy minute: a thousand neighbours in a queue are no thousand witnesses', () => {
    expect(logEOf(domain(90_000, 0.5), domain(90_000, 0.1))).toBe(logEOf(domain(900, 0.5), domain(900, 0.1)));
  });

  it('is the mean over the metrics: one that shows it does not stand for all', () => {
    const nothing = startRatioTest(WORSE.null, WORSE.alternatives);
    const much = addWindow(nothing, { exposure: 0.5, canaryEvents: 80, controlEvents: 10 });
    const tests = { queue: nothing, kernel: much, endToEnd: nothing };
    const evidence = { periods: 1, metrics: ['kernel' as const], tests };
    const mean = (Math.exp(logEValue(much)) + 2 * Math.exp(logEValue(nothing))) / 3;
    expect(Math.exp(logEOfSuspicion(evidence))).toBeCloseTo(mean, 5);
    expect(logEOfRecovery({ ...evidence, metrics: ['kernel', 'queue'] })).toBe(logEValue(nothing));
  });
});

describe('a domain that had degraded', () => {
  const slowShares = { queue: 0.1, kernel: 0.8, endToEnd: 0.1 };
  const step: TrailStep = {
    from: 100,
    direction: 'up',
    domain: HBM,
    gaining: [L2],
    metrics: ['kernel'],
    slowShares,
    utilisation: 0.5,
  };

  it.each<[string, DomainObservation, boolean]>([
    ['as few are slow as is usual', domain(900, 0.1), true],
    // √(0.1 · 0.8) = 0.283
    ['the share is nearer to what is usual than to the trouble', domain(900, 0.28), true],
    ['it is nearer to the trouble', domain(900, 0.29), false],
    ['it has few requests', domain(199, 0), false],
  ])('may have recovered where %s', (_, hbm, may) => {
    const recovery = recover(
      undefined,
      { ...compared, ...step },
      { [HBM]: hbm, [L2]: domain(900, 0.1) },
      TERMS,
    );
    expect(recovery !== undefined).toBe(may);
  });

  it.each<[string, DomainObservation | undefined, boolean]>([
    ['is still slow', domain(900, 0.29), true],
    ['is not, nearer to what is usual', domain(900, 0.28), false],
    ['is not, by few requests', domain(199, 1), false],
    ['is not where nothing is seen of it', undefined, false],
  ])('%s', (_, hbm, isSlow) => {
    expect(isStillSlow(step, hbm === undefined ? {} : { [HBM]: hbm }, TERMS)).toBe(isSlow);
  });
});
