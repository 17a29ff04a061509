import { parseArgs } from 'node:util';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { routerScore } from '../src/simulation/baselines/router-score-chooser.ts';
import { LatencyBins } from '../src/simulation/routing/latency-bins.ts';
import { type RoutingReport, runRouting } from '../src/simulation/routing/run-routing.ts';
import { NO_STRAGGLERS, type RoutingScenario } from '../src/simulation/routing/scenario.ts';
import type { BenchRow } from './run.ts';

const POOLS = 100;
const WORKERS_PER_POOL = 100;
const REQUESTS_PER_MS_PER_POOL = 10;
const LOAD = 0.8;
const SPEEDS = [4, 2, 1] as const;
const HOP = { kind: 'uniform', from: 1, to: 3 } as const;
const GIB = 2 ** 30;

/** All pools in one queue take several times as long, since nothing that they touch stays in the caches: a look at their memory is enough. */
const TOGETHER_S = 1;

/**
 * Whether the routing of a large installation fits in memory and ends: 10 000 workers in 100 pools, 16 routers, a million requests a second at 80 % load,
 * by the router's score. First all of it in one queue of events, for a second, which shows the memory that it takes. Then for the whole time pool by
 * pool: a request is for one pool, and of Poisson arrivals each pool's are a Poisson process of its own, so that pools share nothing.
 *
 *   npm run bench -- simulate-scale --seconds 60 --seed 1
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({
    args: [...options],
    options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } },
  });
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
  const together = timed(() => [
    runRouting(installation(TOGETHER_S, POOLS), routerScore(), seededRandom(seed)),
  ]);
  const memory = process.resourceUsage().maxRSS / (GIB / 1_024);
  const byPool = timed(() =>
    Array.from({ length: POOLS }, (_, pool) =>
      runRouting(installation(seconds, 1), routerScore(), seededRandom(seed + pool)),
    ),
  );
  const most = process.resourceUsage().maxRSS / (GIB / 1_024);
  return {
    rows: [
      ...rowsOf(`in one queue, ${TOGETHER_S} s`, together),
      {
        metric: `in one queue, ${TOGETHER_S} s: memory`,
        value: memory,
        unit: 'GiB',
        target: 8,
        relation: '<=',
      },
      ...rowsOf(`pool by pool, ${seconds} s`, byPool),
      { metric: `pool by pool, ${seconds} s: memory`, value: most, unit: 'GiB', target: 8, relation: '<=' },
    ],
  };
}

interface Timed {
  readonly reports: readonly RoutingReport[];
  readonly tookS: number;
}

function timed(work: () => readonly RoutingReport[]): Timed {
  const startedMs = performance.now();
  const reports = work();
  return { reports, tookS: (performance.now() - startedMs) / 1_000 };
}

function rowsOf(what: string, { reports, tookS }: Timed): BenchRow[] {
  const sum = (figureOf: (report: RoutingReport) => number): number =>
    reports.reduce((all, report) => all + figureOf(report), 0);
  const [arrived, completed] = [sum((report) => report.arrived), sum((report) => report.completed)];
  if (arrived !== completed) throw new Error(`${completed} of ${arrived} requests were completed`);
  const latency = new LatencyBins();
  for (const report of reports) latency.merge(report.latency);
  const events = sum((report) => report.events);
  const row = (metric: string, value: number, unit: string): BenchRow => ({
    metric: `${what}: ${metric}`,
    value,
    unit,
  });
  return [
    row('requests', arrived / 1e6, 'M'),
    row('events', events / 1e6, 'M'),
    row('time', tookS, 's'),
    row('events a second', events / tookS / 1e6, 'M/s'),
    row('p50', latency.quantileMs(0.5), 'ms'),
    row('p99', latency.quantileMs(0.99), 'ms'),
  ];
}

/** So many pools of 100 workers, which have their part of the requests. */
function installation(seconds: number, pools: number): RoutingScenario {
  const speeds = Array.from(
    { length: pools * WORKERS_PER_POOL },
    (_, worker) => SPEEDS[worker % SPEEDS.length] ?? 1,
  );
  const capacity = speeds.reduce((sum, speed) => sum + speed, 0);
  return {
    routers: 16,
    speeds,
    pools,
    load: LOAD,
    arrivals: { kind: 'poisson' },
    work: { kind: 'lognormal', mean: (LOAD * capacity) / (REQUESTS_PER_MS_PER_POOL * pools), sigma: 1 },
    predictionSigma: 0,
    stragglers: NO_STRAGGLERS,
    dispatchMs: HOP,
    acknowledgementMs: HOP,
    statusPeriodMs: 200,
    changes: [],
    warmUpMs: 0,
    endMs: seconds * 1_000,
  };
}
