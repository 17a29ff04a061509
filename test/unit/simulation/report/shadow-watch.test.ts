import { describe, expect, it } from 'vitest';
import {
  makeLeafDivergence,
  makeRouterWindow,
  type RouterWindow,
} from '../../../../src/contracts/records.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { NO_WORKER_UTILISATION } from '../../../../src/core/rollout/projection.ts';
import { type ShadowCandidate, ShadowWatch } from '../../../../src/simulation/report/shadow-watch.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../../../src/stages/policy-controller/controller-config.ts';
import { compileChecked } from '../../../../src/wiring/policy-files.ts';

const TEXT = (plan: string): Buffer =>
  Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: next
version: 2
signals: {candidateCount: int}
rollout: ${plan}
tree:
  - {id: wide, when: candidateCount > 16, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}}
`);

function candidateOf(plan = '{shadow: 15m}'): ShadowCandidate {
  const ref = { digest: 'next', name: 'next', version: 2 };
  return {
    policy: { ref, epoch: 0, compiled: compileChecked(TEXT(plan), REFERENCE_FLEET), source: 'built-in' },
    rollout: DEFAULT_ROLLOUT_CONFIG,
  };
}

interface WindowOf {
  router?: string;
  /** From 1; window n ends at n seconds. */
  n: number;
  requests: number;
  changed?: number;
  apart?: number;
  cpu?: number;
}

function windowOf({ router = 'a', n, requests, changed = 0, apart = 0, cpu = 0.1 }: WindowOf): RouterWindow {
  const of = { leaf: 'old', requests, changed, latencyRatioOver: apart };
  return makeRouterWindow({
    ...{ router, sequence: n, windowStartMs: (n - 1) * 1_000, windowMs: 1_000 },
    ...{ policyDigest: 'live', candidateDigest: 'next' },
    shadow: [makeLeafDivergence({ ...of, changedUndeclared: changed, latencyRatioOverUndeclared: apart })],
    shadowLeaves: { wide: Math.min(requests, 3), rest: Math.max(0, requests - 3) },
    projectedUtilisation: { cpu },
  });
}

function reportOf(windows: readonly WindowOf[], { plan = '{shadow: 15m}', looksMs = [20_000] } = {}) {
  const watch = new ShadowWatch(candidateOf(plan), 0);
  const rest = [...windows];
  for (const lookMs of looksMs) {
    while (rest[0] !== undefined && rest[0].n * 1_000 <= lookMs) {
      const next = rest.shift();
      if (next !== undefined) watch.take(windowOf(next));
    }
    watch.look(lookMs);
  }
  return watch.report(['cpu', 'idle']);
}

const quiet = (of: Partial<WindowOf> = {}) =>
  Array.from({ length: 19 }, (_, index) => ({ n: index + 1, requests: 100, ...of }));

describe('a shadow that is watched', () => {
  it('adds up what changes, and tells the busiest windows from the rest', () => {
    const { requests, all, busiest, leaves } = reportOf([
      ...quiet({ changed: 10, apart: 5 }),
      { n: 20, requests: 900, changed: 450, apart: 90 },
    ]);
    expect(requests).toBe(2_800);
    expect(all.changed).toBeCloseTo(640 / 2_800, 5);
    expect(all.latencyApart).toBeCloseTo(185 / 2_800, 5);
    expect(all.requestsPerSecond).toBe(140);
    // A tenth of twenty windows: the burst and one more.
    expect(busiest).toMatchObject({ requests: 1_000, requestsPerSecond: 500, changed: 0.46 });
    expect(leaves).toEqual([{ leaf: 'old', all, busiest }]);
  });

  it('counts the windows of several routers as one time, in which each has its part of a pool', () => {
    const twice = ['a', 'b'].flatMap((router) => quiet({ router, cpu: 0.2 }));
    const { all, pools } = reportOf(twice.sort((one, other) => one.n - other.n));
    expect(all.requestsPerSecond).toBe(200);
    expect(pools).toEqual([
      { pool: 'cpu', projected: 0.4, projectedBusiest: 0.4, windowsWithoutWorker: 0 },
      { pool: 'idle', projected: 0, projectedBusiest: 0, windowsWithoutWorker: 0 },
    ]);
  });

  it('leaves windows without a worker out of a mean, and says how many they are', () => {
    const [first, ...others] = quiet({ cpu: 0.3 });
    const { pools } = reportOf([{ n: 1, requests: 100, ...first, cpu: NO_WORKER_UTILISATION }, ...others]);
    expect(pools[0]).toMatchObject({ projected: 0.3, windowsWithoutWorker: 1 });
  });

  it('names leaves of the candidate that are hit less than a rollout asks, those without a hit too', () => {
    const { candidateLeaves } = reportOf([{ n: 1, requests: 100 }]);
    expect(candidateLeaves).toEqual([
      { leaf: 'wide', requests: 3, share: 0.03, isSeldom: true },
      { leaf: 'rest', requests: 97, share: 0.97, isSeldom: false },
    ]);
    expect(reportOf([]).candidateLeaves.map(({ requests, isSeldom }) => [requests, isSeldom])).toEqual([
      [0, true],
      [0, true],
    ]);
  });

  it('would not be held for what is within the rules, and says what a rollout asks for besides', () => {
    const { rollout } = reportOf(quiet({ requests: 300 }));
    expect(rollout.holds).toEqual([]);
    expect(rollout.missing).toEqual([
      "880 s of the stage's 900 s are still to be observed",
      '5700 of 10000 requests were decided in shadow',
    ]);
  });

  it.each([
    ['latency-apart', quiet({ changed: 50, apart: 2 }), /apart by more than 5 % for 2 % of the requests/],
    ['projected-utilisation', quiet({ cpu: 0.81 }), /used more than 80 %: cpu 81 %/],
  ])('would be held for %s, by the rules of a rollout', (code, windows, text) => {
    const { holds } = reportOf(windows).rollout;
    expect(holds).toEqual([{ code, text: expect.stringMatching(text), firstMs: 20_000, looks: 1 }]);
  });

  it('would be held for a seldom leaf once the shadow has lasted', () => {
    const { holds } = reportOf(quiet({ requests: 600 }), {
      plan: '{shadow: 10s}',
      looksMs: [20_000],
    }).rollout;
    expect(holds).toEqual([]);
    const few = Array.from({ length: 5 }, (_, index) => ({ n: index + 1, requests: 3_000 }));
    const held = reportOf(few, { plan: '{shadow: 10s}' }).rollout;
    expect(held.holds).toMatchObject([{ code: 'leaf-not-hit', text: expect.stringContaining('wide (15)') }]);
  });

  it('keeps a reason that a later look has no more: a burst counts', () => {
    const windows = [...quiet({ cpu: 0.2 }), { n: 20, requests: 900, cpu: 5 }];
    const { holds, looks } = reportOf(windows, { looksMs: [10_000, 19_000, 20_000, 30_000] }).rollout;
    expect(looks).toBe(4);
    expect(holds).toMatchObject([{ code: 'projected-utilisation', firstMs: 20_000, looks: 1 }]);
  });
});
