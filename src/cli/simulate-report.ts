import type { Comparison } from '../simulation/report/compare.ts';
import type { SimulationReport } from '../simulation/report/simulation-report.ts';
import type { SimulationResult } from '../simulation/report/simulation-result.ts';
import { tableLines } from './table.ts';

/** For people. */
export function simulationLines({ runs, comparisons }: SimulationResult): string[] {
  return [
    'SIMULATED: in virtual time; service times come from profiles, no device was measured.',
    ...runs.flatMap((run) => ['', ...runLines(run)]),
    ...comparisons.flatMap((comparison) => ['', ...comparisonLines(comparison)]),
  ];
}

function runLines(report: SimulationReport): string[] {
  const { policy, fleet, traffic, durationMs, seed, ledger, latency, leaves, pools, notes } = report;
  const { outcomes } = ledger;
  return [
    `${policy.name}@${policy.version} on ${fleet}, ${traffic}, ${durationMs / 1_000} s, seed ${seed}`,
    `${ledger.ingress} requests: ${outcomes.scored} scored, ${outcomes.degraded} degraded, ${outcomes.expired} expired, ${outcomes.rejected} rejected, ${outcomes.deadLettered} dead-lettered, ${ledger.inFlight} in flight`,
    `latency: p50 ${ms(latency.p50Ms)}, p90 ${ms(latency.p90Ms)}, p99 ${ms(latency.p99Ms)}, p99.9 ${ms(latency.p999Ms)}, longest ${ms(latency.maxMs)}`,
    '',
    ...tableLines(
      ['pool', 'class', 'slots', 'answered', 'utilisation', 'queued at most'],
      pools.map(({ pool, accelerator, capacityClass, slots, answered, utilisation, queuedMax }) => [
        pool,
        `${accelerator}, ${capacityClass}`,
        String(slots),
        String(answered),
        share(utilisation),
        String(queuedMax),
      ]),
    ),
    '',
    ...tableLines(
      ['leaf', 'requests', 'share'],
      leaves.map(({ leaf, requests, share: part }) => [leaf, String(requests), share(part)]),
    ),
    ...notes.map((note) => `note: ${note}`),
  ];
}

function comparisonLines({ first, other, differences }: Comparison): string[] {
  const rows = differences
    .filter(({ pairs }) => pairs > 0)
    .map(({ figure, unit, ...of }) => {
      const show = unit === 'ms' ? ms : share;
      const { interval95: interval } = of;
      return [
        figure,
        show(of.first),
        show(of.other),
        show(of.difference),
        interval === null ? 'needs --seeds 2 or more' : `${show(interval.low)} … ${show(interval.high)}`,
        of.isDistinct ? 'distinct' : '',
      ];
    });
  return [
    `${first} against ${other}, on the same random streams:`,
    ...tableLines(['figure', first, other, 'difference', '95 % interval', ''], rows),
  ];
}

function ms(value: number | null): string {
  return value === null ? 'too few' : `${Number(value.toPrecision(4))} ms`;
}

function share(value: number | null): string {
  return value === null ? 'none' : `${Number((value * 100).toPrecision(3))} %`;
}
