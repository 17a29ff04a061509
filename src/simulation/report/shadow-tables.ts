import { rounded } from './rounded.ts';
import type { ShadowReport, ShadowShares } from './shadow-report.ts';

/** Texts of one table; whoever shows it makes them safe. */
export interface TextTable {
  readonly headers: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What a candidate in shadow would change, as tables for people: by leaf of the live policy, by leaf of the candidate, by pool. */
export function shadowTables(
  { all, busiest, leaves, candidateLeaves, pools }: ShadowReport,
  utilisationOf: (pool: string) => number | null,
): TextTable[] {
  return [
    {
      headers: [
        'live leaf',
        'requests',
        'other target',
        'latency apart',
        'other in bursts',
        'apart in bursts',
      ],
      rows: [...leaves.map((leaf) => leafRow(leaf.leaf, leaf)), leafRow('all', { all, busiest })],
    },
    {
      headers: ['candidate leaf', 'requests', 'share', ''],
      rows: candidateLeaves.map(({ leaf, requests, share, isSeldom }) => [
        leaf,
        String(requests),
        percent(share),
        isSeldom ? 'seldom' : '',
      ]),
    },
    {
      headers: ['pool', 'measured, live', 'projected, candidate', 'in bursts', ''],
      rows: pools.map(({ pool, projected, projectedBusiest, windowsWithoutWorker }) => [
        pool,
        percent(utilisationOf(pool)),
        percent(projected),
        percent(projectedBusiest),
        windowsWithoutWorker === 0 ? '' : `no worker in ${windowsWithoutWorker} windows`,
      ]),
    },
  ];
}

/** Whether a rollout would hold the candidate and why, and what this run cannot say of it. */
export function verdictLines({ rollout: { looks, holds, missing } }: ShadowReport): string[] {
  return [
    holds.length === 0
      ? `a rollout would not hold it for what was seen, in ${looks} looks`
      : 'a rollout would hold it:',
    ...holds.map(
      ({ code, text, firstMs, looks: held }) =>
        `${code}, first at ${rounded(firstMs / 1_000)} s, in ${held} of ${looks} looks: ${text}`,
    ),
    ...missing.map((what) => `not seen here: ${what}`),
    'not seen here: what a decision costs; deciding takes no virtual time',
  ];
}

function leafRow(name: string, { all, busiest }: { all: ShadowShares; busiest: ShadowShares }): string[] {
  const shares = ({ requests, changed, latencyApart }: ShadowShares): string[] =>
    requests === 0 ? ['none', 'none'] : [percent(changed), percent(latencyApart)];
  return [name, String(all.requests), ...shares(all), ...shares(busiest)];
}

function percent(share: number | null): string {
  return share === null ? 'none' : `${Number((share * 100).toPrecision(3))} %`;
}
