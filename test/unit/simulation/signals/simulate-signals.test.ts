import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../../../src/config/load-settings.ts';
import { toSignalVector } from '../../../../src/core/policy/explain.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { parseSimulatedFleet } from '../../../../src/simulation/fleet/parse-simulated-fleet.ts';
import type { SimulationReport } from '../../../../src/simulation/report/simulation-report.ts';
import { simulateSignals } from '../../../../src/simulation/signals/simulate-signals.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../../../src/stages/policy-controller/controller-config.ts';
import { madeUpTraffic } from '../../../../src/traffic/traffic-plan.ts';
import { compileChecked, digestOf } from '../../../../src/wiring/policy-files.ts';

const POLICY = Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: small
version: 1
signals: {candidateCount: int}
tree:
  - {id: wide, when: candidateCount > 16, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}, fallback: [cpu]}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}, fallback: [gpu-a100]}
`);

function run({
  seed = 1,
  perSecond = 200,
  capacity = '[]',
  budgetMs = 100,
  candidate = '',
} = {}): SimulationReport {
  const fleet = parseSimulatedFleet(`
apiVersion: millrace/v1
kind: SimulatedFleet
name: small
accelerators:
  gpu-a100:
    kernels: [dense]
    memories: [hbm]
    service: {launchMs: 1, requestMs: 1, candidateMs: 0.1}
    pools: [{pool: gpu, capacityClass: opportunistic, slots: 2, capacity: ${capacity}}]
  cpu:
    kernels: [dense]
    memories: [host]
    service: {launchMs: 1, requestMs: 1, candidateMs: 0.1}
    pools: [{pool: cpu, capacityClass: dedicated}]
`);
  const compiled = compileChecked(POLICY, fleet.fleet);
  const random = seededRandom(seed);
  const requests = [8, 20, 8, 8].map((candidates) => ({
    vector: toSignalVector(compiled, [['candidateCount', candidates]]),
    byName: {
      signals: { candidateCount: candidates, predictedCostMs: 2 + 0.1 * candidates },
      context: {},
      model: 'recorded',
      modelVersion: null,
    },
    ...{ candidates, predictedMs: 2 + 0.1 * candidates, density: 1 },
  }));
  const shadow = {
    rollout: DEFAULT_ROLLOUT_CONFIG,
    policy: {
      ref: { digest: 'next', name: 'small', version: 2 },
      ...{ epoch: 0, source: 'built-in' as const },
      compiled: compileChecked(
        Buffer.from(POLICY.toString().replace('candidateCount > 16', candidate || 'candidateCount > 16')),
        fleet.fleet,
      ),
    },
  };
  const plan = madeUpTraffic({
    ...{ perSecond, bursts: undefined, wave: undefined },
    ...{ candidatesMin: 1, candidatesMax: 1, historyRowsMax: 0 },
  });
  return simulateSignals({
    fleet,
    policy: {
      ref: { digest: digestOf(POLICY), name: 'small', version: 1 },
      epoch: 0,
      compiled,
      source: 'built-in',
    },
    ...(candidate === '' ? {} : { shadow }),
    settings: loadSettings({}).settings,
    random,
    requests,
    arrivals: plan.arrivals(random),
    traffic: plan.description,
    durationMs: 4_000,
    drainMs: 30_000,
    budgetMs,
  });
}

describe('a simulation by signals', () => {
  it('sends each request where its policy does, and takes the hops and the service for it', () => {
    const { ledger, latency, leaves, pools } = run({ perSecond: 20 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    expect(ledger.outcomes.scored).toBe(ledger.ingress);
    expect(leaves.map(({ leaf }) => leaf)).toEqual(['rest', 'wide']);
    expect(leaves[0]?.share).toBeCloseTo(0.75, 1);
    // Seven hops of 1 ms, and 1 + 1 + 0.1 · 8 ms: most requests find the device idle.
    expect(latency.p50Ms).toBeCloseTo(9.8, 6);
    const [gpu, cpu] = pools;
    expect(cpu?.utilisation).toBeCloseTo(((cpu?.answered ?? 0) * 2.8) / 4_000, 2);
    expect((gpu?.answered ?? 0) + (cpu?.answered ?? 0)).toBe(ledger.ingress);
  });

  it('is the same for a seed, and another for another', () => {
    expect(JSON.stringify(run())).toBe(JSON.stringify(run()));
    expect(JSON.stringify(run({ seed: 2 }))).not.toBe(JSON.stringify(run()));
  });

  it('lets a candidate decide beside the policy, which changes nothing else', () => {
    const { shadow, ...others } = run({ candidate: 'candidateCount > 30' });
    expect(JSON.stringify(others)).toBe(JSON.stringify(run()));
    expect(shadow?.requests).toBe(others.ledger.ingress);
    expect(shadow?.leaves).toMatchObject([
      { leaf: 'rest', all: { changed: 0, latencyApart: 0 } },
      { leaf: 'wide', all: { changed: 1 } },
    ]);
    expect(shadow?.all.changed).toBeCloseTo(0.25, 2);
    expect(shadow?.candidateLeaves).toMatchObject([{ requests: 0 }, { requests: others.ledger.ingress }]);
    // All traffic on one CPU: 200/s of 0.75 · 2.8 + 0.25 · 4 ms as predicted.
    expect(shadow?.pools.find(({ pool }) => pool === 'cpu')?.projected).toBeGreaterThan(0.4);
    expect(run({ candidate: 'candidateCount > 16' }).shadow?.all).toMatchObject({
      changed: 0,
      latencyApart: 0,
    });
  });

  it('queues and expires what is too much, and loses none of it', () => {
    const { ledger, pools, series } = run({ perSecond: 3_000 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    expect(ledger.outcomes.expired).toBeGreaterThan(1_000);
    expect(Math.max(...series.inFlight)).toBeGreaterThan(100);
    expect(pools.find(({ pool }) => pool === 'cpu')?.utilisation).toBeGreaterThan(0.9);
  });

  it.each([
    ['after notice', '[{at: 1s, slots: 0, notice: 500ms}, {at: 2s, slots: 2}]'],
    ['at once', '[{at: 1s, slots: 0}, {at: 2s, slots: 2}]'],
  ])('follows capacity that goes %s, by the fallback of the leaf', (how, capacity) => {
    const { ledger, pools, series } = run({ capacity, perSecond: 100 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    if (how === 'after notice') expect(ledger.outcomes.scored).toBe(ledger.ingress);
    const gpu = series.pools.find(({ pool }) => pool === 'gpu');
    const at = (ms: number) => gpu?.workers[Math.floor(ms / series.stepMs)];
    expect([at(900), at(1_500), at(2_500)]).toEqual([2, 0, 2]);
    const usual = run({ perSecond: 100 }).pools;
    expect(pools[1]?.answered).toBeGreaterThan(usual[1]?.answered ?? 0);
  });

  it('runs a batch again that ran as its worker was killed', () => {
    for (const seed of [1, 2, 3]) {
      const { ledger } = run({ seed, perSecond: 900, capacity: '[{at: 1s, slots: 0}, {at: 2s, slots: 2}]' });
      expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    }
  });
});
