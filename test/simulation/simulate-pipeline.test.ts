import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load-settings.ts';
import { type SeededRandom, seededRandom } from '../../src/core/random/seeded-random.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import { parseSimulatedFleet } from '../../src/simulation/fleet/parse-simulated-fleet.ts';
import type { SimulatedFleet } from '../../src/simulation/fleet/simulated-fleet.ts';
import type { SizingOptions } from '../../src/simulation/pipeline/bus-sizing.ts';
import { simulatePipeline } from '../../src/simulation/pipeline/simulate-pipeline.ts';
import type { SimulationReport } from '../../src/simulation/report/simulation-report.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../src/stages/policy-controller/controller-config.ts';
import type { ActivePolicy } from '../../src/stages/request-router/active-policy.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { madeUpTraffic } from '../../src/traffic/traffic-plan.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';

const repository = await openRepository('models/repository');
const catalogue = readCatalogue('models/catalogue');

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

/** As the policy above, but half of what is wide to the CPU. */
const CANDIDATE = Buffer.from(
  POLICY.toString().replace('version: 1', 'version: 2').replace('candidateCount > 16', 'candidateCount > 24'),
);

/** Two GPUs whose capacity is as told, and a CPU. */
function fleetOf(capacity = '[]'): SimulatedFleet {
  return parseSimulatedFleet(`
apiVersion: millrace/v1
kind: SimulatedFleet
name: small
partitions: 2
accelerators:
  gpu-a100:
    kernels: [dense]
    memories: [hbm]
    pools: [{pool: gpu, capacityClass: opportunistic, slots: 2, capacity: ${capacity}}]
  cpu:
    kernels: [dense]
    memories: [host]
    pools: [{pool: cpu, capacityClass: dedicated}]
`);
}

/** The same streams, but one of them begins some draws later. */
function shifted(random: SeededRandom, name: string): SeededRandom {
  return {
    seed: random.seed,
    stream(wanted) {
      const stream = random.stream(wanted);
      if (wanted === name) for (let n = 0; n < 3; n += 1) stream.next();
      return stream;
    },
  };
}

interface RunOptions {
  fleet?: SimulatedFleet;
  random?: SeededRandom;
  perSecond?: number;
  durationMs?: number;
  deadlineMs?: number;
  withShadow?: boolean;
  sizing?: SizingOptions;
}

function run(options: RunOptions = {}): Promise<SimulationReport> {
  const { fleet = fleetOf(), random = seededRandom(1), perSecond = 100, durationMs = 1_000 } = options;
  const { deadlineMs } = options;
  const activeOf = (bytes: Buffer, version: number): ActivePolicy => ({
    ref: { digest: digestOf(bytes), name: 'small', version },
    epoch: 0,
    compiled: compileChecked(bytes, fleet.fleet),
    source: 'built-in',
  });
  const plan = madeUpTraffic({
    perSecond,
    bursts: undefined,
    wave: undefined,
    candidatesMin: 8,
    candidatesMax: 32,
    historyRowsMax: 4,
  });
  return simulatePipeline({
    fleet,
    policy: activeOf(POLICY, 1),
    ...(options.sizing === undefined ? {} : { sizing: options.sizing }),
    ...(options.withShadow === true
      ? { shadow: { policy: activeOf(CANDIDATE, 2), rollout: DEFAULT_ROLLOUT_CONFIG } }
      : {}),
    settings: loadSettings({}).settings,
    repository,
    random,
    digest: digestOf,
    checkPolicy: (bytes) => compileChecked(bytes, fleet.fleet).document,
    traffic: {
      description: plan.description,
      arrivals: plan.arrivals(random),
      maker: createRequestMaker(
        catalogue,
        random.stream('requests'),
        deadlineMs === undefined ? {} : { deadlineMs },
      ),
    },
    durationMs,
    drainMs: 30_000,
  });
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe('a simulation of the whole pipeline', () => {
  it('balances its books, and its figures agree with each other', async () => {
    const report = await run();
    const { ledger, latency, leaves, pools, series } = report;
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true, duplicatesVisible: 0 });
    expect(ledger.ingress).toBeGreaterThan(60);
    expect(ledger.outcomes.scored).toBe(ledger.ingress);
    expect(latency.samples).toBe(ledger.ingress);
    expect(sum(series.arrivals)).toBe(ledger.ingress);
    expect(sum(leaves.map(({ requests }) => requests))).toBe(ledger.ingress);
    expect(sum(pools.map(({ answered }) => answered))).toBe(ledger.ingress);
    // Three topics and the way to an outside reader, each a hop there and one from it, and the batch itself.
    expect(latency.p50Ms).toBeGreaterThan(4);
    expect(latency.p50Ms).toBeLessThan(20);
    for (const { utilisation } of pools) expect(utilisation).toBeGreaterThan(0);
    expect(report.notes).toEqual([]);
  });

  it('is the same for a seed, and another for another', async () => {
    const [one, again, other] = [await run(), await run(), await run({ random: seededRandom(2) })];
    expect(JSON.stringify(again)).toBe(JSON.stringify(one));
    expect(JSON.stringify(other)).not.toBe(JSON.stringify(one));
  });

  it.each(['shapes', 'router-0/router.ties', 'gpu-0/service-time'])(
    'has the same arrivals where the stream %s draws something else',
    async (name) => {
      const usual = await run();
      const changed = await run({ random: shifted(seededRandom(1), name) });
      expect(changed.series.arrivals).toEqual(usual.series.arrivals);
      expect(JSON.stringify(changed)).not.toBe(JSON.stringify(usual));
    },
  );

  it('is the same where only values of requests change that no figure depends on', async () => {
    const changed = await run({ random: shifted(seededRandom(1), 'requests') });
    expect(JSON.stringify(changed)).toBe(JSON.stringify(await run()));
  });

  it('has other arrivals where their own stream draws something else', async () => {
    const changed = await run({ random: shifted(seededRandom(1), 'arrivals') });
    expect(changed.series.arrivals).not.toEqual((await run()).series.arrivals);
  });

  it.each([
    ['after notice', '[{at: 1s, slots: 0, notice: 500ms}, {at: 2s, slots: 2}]', 500],
    ['at once', '[{at: 1s, slots: 0}, {at: 2s, slots: 2}]', 1_000],
  ])('loses nothing where capacity goes %s and comes back', async (_how, capacity, goneMs) => {
    const { ledger, latency, series } = await run({ fleet: fleetOf(capacity), durationMs: 3_000 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    // Who is told says good-bye before it goes, and no router sends it any more.
    if (goneMs < 1_000) {
      expect(ledger.outcomes.scored).toBe(ledger.ingress);
      expect(latency.maxMs).toBeLessThan(100);
    }
    const gpu = series.pools.find(({ pool }) => pool === 'gpu');
    const workersAt = (atMs: number): number | undefined => gpu?.workers[Math.floor(atMs / series.stepMs)];
    expect([workersAt(goneMs - 100), workersAt(goneMs + 100), workersAt(2_500)]).toEqual([2, 0, 2]);
    expect(gpu?.utilisation[Math.floor(1_500 / series.stepMs)]).toBeNull();
  });

  it('lets a candidate decide beside the policy, which changes nothing else', async () => {
    const usual = await run();
    const { shadow, ...others } = await run({ withShadow: true });
    expect(JSON.stringify(others)).toBe(JSON.stringify(usual));
    const wide = usual.leaves.find(({ leaf }) => leaf === 'wide')?.requests ?? 0;
    const kept = shadow?.candidateLeaves.find(({ leaf }) => leaf === 'wide')?.requests ?? 0;
    expect(shadow?.requests).toBe(usual.ledger.ingress);
    expect(kept).toBeGreaterThan(5);
    expect(kept).toBeLessThan(wide);
    const [first, second] = shadow?.leaves.toSorted((a, b) => (a.leaf < b.leaf ? -1 : 1)) ?? [];
    expect(first).toMatchObject({ leaf: 'rest', all: { changed: 0, latencyApart: 0 } });
    expect(second?.all.changed).toBeCloseTo((wide - kept) / wide, 4);
    expect(shadow?.rollout.missing.join()).toContain(`${usual.ledger.ingress} of 10000 requests`);
  });

  it('measures what its topics carry, also beside a shadow, and changes nothing else', async () => {
    const assumptions = {
      ...{ replication: 2, partitionBytesPerSecond: 10e6, brokerWrittenBytesPerSecond: 1e9 },
      ...{ brokerSentBytesPerSecond: 1e9, brokerPartitions: 1_000, headroom: 0 },
    };
    const { kafka, ...others } = await run({ sizing: { scale: 1, assumptions } });
    expect(JSON.stringify(others)).toBe(JSON.stringify(await run()));
    const of = (topic: string) => kafka?.topics.find((each) => each.topic === topic);
    const [ingress, features, results] = ['ingress.v1', 'features.v1', 'scored-results.v1'].map(of);
    // One second: what came in it, but for what is still under way at its end.
    expect(ingress?.recordsPerSecond).toBe(others.ledger.ingress);
    for (const topic of [ingress, features, results]) {
      expect(topic?.recordsPerSecond).toBeGreaterThan(others.ledger.ingress - 5);
      expect(topic?.inBytesPerSecond).toBeGreaterThan(100 * (topic?.recordsPerSecond ?? 0));
      // One reader each: the books are no reader of a live system.
      expect((topic?.outBytesPerSecond ?? 0) / (topic?.inBytesPerSecond ?? 1)).toBeCloseTo(1, 1);
    }
    // The features hold the request, and more.
    expect(features?.inBytesPerSecond).toBeGreaterThan(ingress?.inBytesPerSecond ?? 0);
    expect([of('dispatch.gpu.v1')?.partitions, of('dispatch.cpu.v1')?.partitions]).toEqual([2, 1]);
    expect(kafka).toMatchObject({ brokers: 2, redisPerSecond: 1.25 + 3 });
    const beside = await run({ sizing: { scale: 1, assumptions }, withShadow: true });
    const metrics = beside.kafka?.topics.find(({ topic }) => topic === 'routing-metrics.v1');
    expect(metrics?.outBytesPerSecond).toBe(of('routing-metrics.v1')?.outBytesPerSecond);
  });

  it('shows a queue that grows, and what expires in it, where the fleet is too small', async () => {
    const { ledger, pools, series } = await run({ perSecond: 3_000, durationMs: 400, deadlineMs: 100 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    expect(ledger.outcomes.expired).toBeGreaterThan(100);
    expect(Math.max(...series.inFlight)).toBeGreaterThan(100);
    expect(pools.some(({ utilisation }) => (utilisation ?? 0) > 0.8)).toBe(true);
  });
});
