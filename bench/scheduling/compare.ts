import { parseArgs } from 'node:util';
import type { BenchRow } from '../run.ts';
import { CHOOSERS, type ChooserName, HEARS_STATUS } from './choosers.ts';
import { type Interval, interval95 } from './interval.ts';
import { runSeeds, type SeedFigures } from './run-seeds.ts';
import { BASE, type Case } from './scenarios.ts';

export interface Comparison {
  readonly cases: readonly Case[];
  readonly peers: readonly ChooserName[];
  /** The most that the score's p99 may be of a peer's. */
  readonly targets: Partial<Record<ChooserName, number>>;
  /** The cases differ by heartbeats alone: who listens to none does the same in all of them, and is run once. */
  readonly differByStatus: boolean;
}

/**
 * The score's p99 and each peer's, and their ratios of the same seeds, which meet the same requests; with 95 % intervals over the seeds. `--seeds`,
 * `--seed` of the first, `--quick`: 3 seeds of 2 s, to look at and not to quote.
 */
export function compare(options: readonly string[], comparison: Comparison): BenchRow[] {
  const { values } = parseArgs({
    args: [...options],
    options: {
      seeds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      quick: { type: 'boolean', default: false },
    },
  });
  const known = new Map<ChooserName, readonly SeedFigures[]>();
  return comparison.cases.flatMap((each) => {
    const scenario = { ...BASE, ...each.changed, ...(values.quick ? { warmUpMs: 1_000, endMs: 3_000 } : {}) };
    const figuresOf = (name: ChooserName): readonly SeedFigures[] => {
      const same = known.get(name);
      if (same !== undefined) return same;
      const figures = runSeeds(
        scenario,
        CHOOSERS[name],
        values.quick ? 3 : Number(values.seeds),
        Number(values.seed),
      );
      if (comparison.differByStatus && !HEARS_STATUS.has(name)) known.set(name, figures);
      return figures;
    };
    console.error(each.name);
    return rowsOf(each.name, comparison, figuresOf);
  });
}

function rowsOf(
  what: string,
  { peers, targets }: Comparison,
  figuresOf: (name: ChooserName) => readonly SeedFigures[],
): BenchRow[] {
  const own = figuresOf('score');
  const rows = [
    row(`${what}: p99`, interval95(own.map(({ p99Ms }) => p99Ms)), 'ms'),
    row(`${what}: mean`, interval95(own.map(({ meanMs }) => meanMs)), 'ms'),
  ];
  for (const name of peers) {
    const peer = figuresOf(name);
    rows.push({ ...row(`${what}: p99`, interval95(peer.map(({ p99Ms }) => p99Ms)), 'ms'), peer: name });
    const ratios = own.map(({ p99Ms }, seed) => p99Ms / (peer[seed]?.p99Ms ?? Number.NaN));
    const ratio = row(`${what}: p99 against ${name}`, interval95(ratios), '×');
    const target = targets[name];
    rows.push(target === undefined ? ratio : { ...ratio, target, relation: '<=' });
  }
  return rows;
}

function row(metric: string, { mean, half }: Interval, unit: string): BenchRow {
  return { metric: `${metric}, ± ${half.toPrecision(2)}`, value: mean, unit };
}
