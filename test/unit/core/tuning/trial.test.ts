import { describe, expect, it } from 'vitest';
import { failureOf } from '../../../../src/core/tuning/trial.ts';
import type { DomainObservation, LatencySummary } from '../../../../src/core/tuning/tuning-observation.ts';
import type { References, Trial } from '../../../../src/core/tuning/tuning-state.ts';
import { HBM, L2 } from './tuning.fixture.ts';

const reference = { learned: 10, p50Ms: 100, limitMs: 200 };
const usual: References = { queue: reference, kernel: reference, endToEnd: reference };
const references = { [HBM]: usual, [L2]: usual };

/** Takes so many times as long as is usual. */
function domain(requests: number, factor: number): DomainObservation {
  const latency: LatencySummary = {
    count: requests,
    p50Ms: 100 * factor,
    p90Ms: 200 * factor,
    p99Ms: 400 * factor,
    over: 0,
  };
  return {
    pool: 'a100',
    memory: 'hbm',
    requests,
    simulated: false,
    utilisation: 0.5,
    latency: { queue: latency, kernel: latency, endToEnd: latency },
  };
}

/** A fifth of the thousand requests of HBM was to move to a thousand others. */
const trial: Trial = {
  period: 1,
  domain: HBM,
  gaining: [L2],
  share: 0.2,
  before: { domainRequests: 1_000, gainingRequests: 1_000, gainingSlowdown: 1 },
  failure: undefined,
};

describe('a step', () => {
  it.each<[string, DomainObservation, DomainObservation, RegExp | undefined]>([
    ['helped where requests moved and nobody lost', domain(800, 2), domain(1_200, 1), undefined],
    ['helped where a loss of a twentieth is no loss', domain(800, 2), domain(1_200, 1.05), undefined],
    // 200 requests gain 1.9 each; 1 000 lose 0.05.
    [
      'helped where what was gained is more than what was lost',
      domain(800, 3),
      domain(1_200, 1.1),
      undefined,
    ],
    // 200 gain 0.6; 1 000 lose 0.35.
    [
      'did not help where more was lost than gained',
      domain(800, 2),
      domain(1_200, 1.4),
      /v100\/l2 went from 1\.00 to 1\.40/,
    ],
    [
      'did not help where the traffic did not move',
      domain(1_000, 2),
      domain(1_000, 1),
      /did not move from a100\/hbm/,
    ],
    ['may have helped where chance could hide that it moved', domain(10, 2), domain(10, 1), undefined],
    ['may have helped where nobody came', domain(0, 1), domain(0, 1), undefined],
  ])('%s', (_, hbm, l2, failure) => {
    const told = failureOf(trial, { [HBM]: hbm, [L2]: l2 }, references);
    if (failure === undefined) expect(told).toBeUndefined();
    else expect(told).toMatch(failure);
  });
});
