import { expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load-settings.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import { parseSimulatedFleet } from '../../src/simulation/fleet/parse-simulated-fleet.ts';
import { simulatePipeline } from '../../src/simulation/pipeline/simulate-pipeline.ts';
import type { SimulationReport } from '../../src/simulation/report/simulation-report.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { madeUpTraffic } from '../../src/traffic/traffic-plan.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';

const BUDGET_MS = 100;
const DURATION_MS = 6_000;
const POLICY = Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: one
version: 1
tree:
  - {id: all, to: {accelerator: cpu, kernel: dense, memory: host}}
`);
/** Two workers, each of which does some 64 of these requests a second. */
const fleet = parseSimulatedFleet(`
apiVersion: millrace/v1
kind: SimulatedFleet
name: slow
accelerators:
  cpu:
    kernels: [dense]
    memories: [host]
    pools: [{pool: cpu, capacityClass: dedicated, slots: 2, speed: 0.1}]
`);

async function run(perSecond: number, slaMs: number): Promise<SimulationReport> {
  const random = seededRandom(1);
  const plan = madeUpTraffic({
    perSecond,
    ...{ bursts: undefined, wave: undefined },
    ...{ candidatesMin: 8, candidatesMax: 64, historyRowsMax: 4 },
  });
  const compiled = compileChecked(POLICY, fleet.fleet);
  return simulatePipeline({
    fleet,
    policy: {
      ref: { digest: digestOf(POLICY), name: 'one', version: 1 },
      epoch: 0,
      compiled,
      source: 'built-in',
    },
    settings: loadSettings({ MILLRACE_OVERLOAD_SLA_MS: String(slaMs) }).settings,
    repository: await openRepository('models/repository'),
    random,
    digest: digestOf,
    checkPolicy: (bytes) => compileChecked(bytes, fleet.fleet).document,
    traffic: {
      description: plan.description,
      arrivals: plan.arrivals(random),
      maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
        deadlineMs: BUDGET_MS,
      }),
    },
    durationMs: DURATION_MS,
    drainMs: 10_000,
  });
}

it('asked for twice what it can do, the pipeline answers as many with the rules of overload as without, and in time', async () => {
  const [without, withRules] = [await run(250, 0), await run(250, BUDGET_MS)];
  for (const { ledger } of [without, withRules])
    expect(ledger).toMatchObject({ balanced: true, inFlight: 0 });
  expect(without.latency.p50Ms).toBeGreaterThan(BUDGET_MS);
  expect(without.ledger.outcomes.rejected).toBe(0);
  expect(withRules.latency.p50Ms).toBeLessThan(BUDGET_MS);
  expect(withRules.ledger.outcomes.rejected).toBeGreaterThan(0);
  expect(withRules.ledger.outcomes.scored).toBeGreaterThan(0.95 * without.ledger.outcomes.scored);
  expect(withRules.pools[0]?.utilisation).toBeGreaterThan(0.99);
});

it('asked for what it can do, it refuses nothing', async () => {
  const { ledger } = await run(60, BUDGET_MS);
  expect(ledger.outcomes).toMatchObject({ scored: ledger.ingress, rejected: 0, expired: 0 });
});
