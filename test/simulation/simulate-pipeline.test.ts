import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load-settings.ts';
import { type SeededRandom, seededRandom } from '../../src/core/random/seeded-random.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import { parseSimulatedFleet } from '../../src/simulation/fleet/parse-simulated-fleet.ts';
import type { SimulatedFleet } from '../../src/simulation/fleet/simulated-fleet.ts';
import { simulatePipeline } from '../../src/simulation/pipeline/simulate-pipeline.ts';
import type { SimulationReport } from '../../src/simulation/report/simulation-report.ts';
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
}

function run(options: RunOptions = {}): Promise<SimulationReport> {
  const { fleet = fleetOf(), random = seededRandom(1), perSecond = 100, durationMs = 1_000 } = options;
  const { deadlineMs } = options;
  const compiled = compileChecked(POLICY, fleet.fleet);
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
    policy: {
      ref: { digest: digestOf(POLICY), name: 'small', version: 1 },
      epoch: 0,
      compiled,
      source: 'built-in',
    },
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

  it('shows a queue that grows, and what expires in it, where the fleet is too small', async () => {
    const { ledger, pools, series } = await run({ perSecond: 3_000, durationMs: 400, deadlineMs: 100 });
    expect(ledger).toMatchObject({ inFlight: 0, balanced: true });
    expect(ledger.outcomes.expired).toBeGreaterThan(100);
    expect(Math.max(...series.inFlight)).toBeGreaterThan(100);
    expect(pools.some(({ utilisation }) => (utilisation ?? 0) > 0.8)).toBe(true);
  });
});
