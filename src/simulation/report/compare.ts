import { rounded } from './rounded.ts';
import type { SimulationReport } from './simulation-report.ts';
import { studentT95 } from './student-t.ts';

/** A figure of one run that runs are compared by. */
export interface ComparedFigure {
  readonly figure: string;
  readonly unit: string;
}

/** How a figure of one policy differs from that of the first, run by run on the same random streams. */
export interface PairedDifference extends ComparedFigure {
  /** Runs in which both have the figure. */
  readonly pairs: number;
  /** Means over these; null without any. */
  readonly first: number | null;
  readonly other: number | null;
  readonly difference: number | null;
  /** Of the mean difference, by Student's t over the seeds: null for fewer than two pairs. */
  readonly interval95: { readonly low: number; readonly high: number } | null;
  /** Whether the interval leaves out 0: over the seeds that were run, the difference is no accident. */
  readonly isDistinct: boolean;
}

export interface Comparison {
  readonly first: string;
  readonly other: string;
  readonly differences: readonly PairedDifference[];
}

interface Figure extends ComparedFigure {
  of(report: SimulationReport): number | null;
}

/** @param first runs of the first policy by seed, in the same order as `other` */
export function compareRuns(
  first: readonly SimulationReport[],
  other: readonly SimulationReport[],
): Comparison {
  return {
    first: nameOf(first[0]),
    other: nameOf(other[0]),
    differences: figuresOf(first[0]).map((figure) => difference(figure, first, other)),
  };
}

function nameOf(report: SimulationReport | undefined): string {
  return report === undefined ? '' : `${report.policy.name}@${report.policy.version}`;
}

function figuresOf(report: SimulationReport | undefined): Figure[] {
  const share =
    (outcome: keyof SimulationReport['ledger']['outcomes']) =>
    ({ ledger }: SimulationReport): number | null =>
      ledger.ingress === 0 ? null : ledger.outcomes[outcome] / ledger.ingress;
  return [
    { figure: 'latency p50', unit: 'ms', of: ({ latency }) => latency.p50Ms },
    { figure: 'latency p99', unit: 'ms', of: ({ latency }) => latency.p99Ms },
    { figure: 'scored', unit: 'share', of: share('scored') },
    { figure: 'degraded', unit: 'share', of: share('degraded') },
    { figure: 'expired', unit: 'share', of: share('expired') },
    { figure: 'rejected', unit: 'share', of: share('rejected') },
    ...(report?.pools ?? []).map(
      ({ pool }): Figure => ({
        figure: `utilisation of ${pool}`,
        unit: 'share',
        of: ({ pools }) => pools.find((each) => each.pool === pool)?.utilisation ?? null,
      }),
    ),
  ];
}

function difference(
  { figure, unit, of }: Figure,
  first: readonly SimulationReport[],
  other: readonly SimulationReport[],
): PairedDifference {
  const pairs = first.flatMap((report, index) => {
    const counterpart = other[index];
    const [before, after] = [of(report), counterpart === undefined ? null : of(counterpart)];
    return before === null || after === null ? [] : [{ before, after }];
  });
  const differences = pairs.map(({ before, after }) => after - before);
  const interval95 = meanInterval(differences);
  return {
    figure,
    unit,
    pairs: pairs.length,
    first: meanOf(pairs.map(({ before }) => before)),
    other: meanOf(pairs.map(({ after }) => after)),
    difference: meanOf(differences),
    interval95,
    isDistinct: interval95 !== null && (interval95.low > 0 || interval95.high < 0),
  };
}

function meanOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : rounded(values.reduce((sum, value) => sum + value, 0) / values.length);
}

/** The mean ± t · s/√n, s with n − 1 degrees of freedom. Null for fewer than two values. */
export function meanInterval(values: readonly number[]): { low: number; high: number } | null {
  const n = values.length;
  if (n < 2) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = studentT95(n - 1) * Math.sqrt(variance / n);
  return { low: rounded(mean - half), high: rounded(mean + half) };
}
