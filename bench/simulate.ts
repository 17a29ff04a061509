import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadSettings } from '../src/config/load-settings.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { openRepository } from '../src/inference/repository/open-repository.ts';
import { parseSimulatedFleet } from '../src/simulation/fleet/parse-simulated-fleet.ts';
import { simulatePipeline } from '../src/simulation/pipeline/simulate-pipeline.ts';
import { readCatalogue } from '../src/traffic/catalogue.ts';
import { createRequestMaker } from '../src/traffic/request-maker.ts';
import { madeUpTraffic } from '../src/traffic/traffic-plan.ts';
import { compileChecked, digestOf } from '../src/wiring/policy-files.ts';
import type { BenchRow } from './run.ts';

/**
 * How much faster than real time `millrace simulate` is, all stages with their codecs, at requests of about 2 KB (8 to 16 candidates) and of the
 * default mix (8 to 256). By the clock, and by the processor time of the whole process: on a machine that others use, the latter is nearer to what the code costs.
 *
 *   npm run bench -- simulate --rate 1000 --seconds 60 --seed 1
 */

const USAGE = {
  rate: { type: 'string', default: '1000' },
  seconds: { type: 'string', default: '60' },
  seed: { type: 'string', default: '1' },
} as const;

interface Load {
  perSecond: number;
  durationMs: number;
  seed: number;
  candidatesMax: number;
  historyRowsMax: number;
}

export async function run(args: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const perSecond = Number(values.rate);
  const load = { perSecond, durationMs: Number(values.seconds) * 1_000, seed: Number(values.seed) };
  const small = { ...load, candidatesMax: 16, historyRowsMax: 4 };
  const mixed = { ...load, candidatesMax: 256, historyRowsMax: 32 };
  // What is compiled while the first seconds pass is not what a long run costs.
  await measure({ ...small, durationMs: 5_000 });
  const rows: BenchRow[] = [];
  for (const [what, each] of [
    ['about 2 KB', small],
    ['8 to 256 candidates', mixed],
  ] as const) {
    const { clockMs, processorMs, answered } = await measure(each);
    const name = `full stages at ${perSecond} requests/s, ${what}`;
    rows.push(
      {
        metric: `${name}: times real time`,
        value: each.durationMs / clockMs,
        unit: '×',
        target: 20,
        relation: '>=',
      },
      { metric: `${name}: by processor time`, value: each.durationMs / processorMs, unit: '×' },
      { metric: `${name}: processor time of a request`, value: (processorMs * 1_000) / answered, unit: 'µs' },
    );
  }
  return { rows };
}

async function measure(load: Load): Promise<{ clockMs: number; processorMs: number; answered: number }> {
  const { seed, perSecond, durationMs, candidatesMax, historyRowsMax } = load;
  const fleet = parseSimulatedFleet(readFileSync('examples/fleets/simulated.yaml'));
  const bytes = readFileSync('examples/policies/starter.yaml');
  const compiled = compileChecked(bytes, fleet.fleet);
  const { name, version } = compiled.document;
  const repository = await openRepository('models/repository');
  const catalogue = readCatalogue('models/catalogue');
  const random = seededRandom(seed);
  const plan = madeUpTraffic({
    ...{ perSecond, candidatesMax, historyRowsMax },
    ...{ bursts: undefined, wave: undefined, candidatesMin: 8 },
  });
  const startedMs = performance.now();
  const before = process.cpuUsage();
  const { ledger } = await simulatePipeline({
    fleet,
    policy: { ref: { digest: digestOf(bytes), name, version }, epoch: 0, compiled, source: 'built-in' },
    settings: loadSettings({}).settings,
    repository,
    random,
    digest: digestOf,
    checkPolicy: (policy) => compileChecked(policy, fleet.fleet).document,
    traffic: {
      description: plan.description,
      arrivals: plan.arrivals(random),
      maker: createRequestMaker(catalogue, random.stream('requests')),
    },
    durationMs,
    drainMs: 60_000,
  });
  const { user, system } = process.cpuUsage(before);
  if (!ledger.balanced) throw new Error('the books do not balance');
  return {
    clockMs: performance.now() - startedMs,
    processorMs: (user + system) / 1_000,
    answered: ledger.ingress,
  };
}
