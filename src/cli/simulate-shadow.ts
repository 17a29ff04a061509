import type { ShadowReport } from '../simulation/report/shadow-report.ts';
import { shadowTables, verdictLines } from '../simulation/report/shadow-tables.ts';
import type { PoolSummary } from '../simulation/report/simulation-report.ts';
import { tableLines } from './table.ts';

/** What a candidate in shadow would change, for people. */
export function shadowLines(report: ShadowReport, live: readonly PoolSummary[]): string[] {
  const { candidate, requests, exceptions, busiest } = report;
  const utilisationOf = (pool: string) => live.find((each) => each.pool === pool)?.utilisation ?? null;
  return [
    `${candidate.name}@${candidate.version} in shadow: ${requests} requests decided by both, ${exceptions} threw; bursts are the busiest windows, ${busiest.requestsPerSecond}/s`,
    ...shadowTables(report, utilisationOf).flatMap(({ headers, rows }) => [
      ...tableLines(
        [...headers],
        rows.map((row) => [...row]),
      ),
      '',
    ]),
    ...verdictLines(report),
  ];
}
