import { type CostModel, parseCostModel, predictCostMs } from '../signals/cost-model.ts';
import type { AcceleratorProfile, TargetProfile, VersionProfile } from './profile.ts';

/** Where a request can be computed. */
export interface MeasuredTarget {
  readonly accelerator: string;
  readonly kernel: string;
  readonly memory: string;
  /** Of one request of so many candidates, over the versions that all profiles have: the geometric mean, ms. */
  costMs(candidates: number): number;
}

/** The target that is the fastest one for requests of up to so many candidates; the last one has no bound. */
export interface Stretch {
  readonly upTo: number | undefined;
  readonly target: MeasuredTarget;
}

/** A target that is faster by less does not take over: it may be noise, and another branch is another thing to understand. */
export const WORTH_A_BRANCH = 0.05;
/** Beside the others it is measured with inputs that it is not meant for: `sparse` has a branch of its own. */
const BY_ITS_OWN_RULE = 'sparse';

/** Targets that were measured for every version that all of the profiles have. Empty where no version is in all of them. */
export function measuredTargets(profiles: readonly AcceleratorProfile[]): MeasuredTarget[] {
  const common = commonVersions(profiles);
  if (common.size === 0) return [];
  return profiles.flatMap(({ accelerator, versions }) => {
    const wanted = versions.filter((version) => common.has(nameOf(version)));
    const targets = wanted[0]?.targets ?? [];
    return targets.flatMap(({ kernel, memory }) => {
      const costs = wanted.flatMap((version) => costOf(version, kernel, memory));
      if (kernel === BY_ITS_OWN_RULE || costs.length < wanted.length) return [];
      return [{ accelerator, kernel, memory, costMs: (candidates) => geometricMean(costs, candidates) }];
    });
  });
}

/** From one candidate to `candidatesMax`: which target is the fastest by at least `WORTH_A_BRANCH`. */
export function stretches(targets: readonly MeasuredTarget[], candidatesMax: number): Stretch[] {
  const first = fastest(targets, 1);
  if (first === undefined) return [];
  let current: MeasuredTarget = first;
  const found: Stretch[] = [];
  for (let candidates = 2; candidates <= candidatesMax; candidates += 1) {
    const next = fastest(targets, candidates) ?? current;
    if (next.costMs(candidates) >= (1 - WORTH_A_BRANCH) * current.costMs(candidates)) continue;
    found.push({ upTo: candidates - 1, target: current });
    current = next;
  }
  return [...found, { upTo: undefined, target: current }];
}

/** The first of those that are equal. Asked for every number of candidates, so without sorting. */
function fastest(targets: readonly MeasuredTarget[], candidates: number): MeasuredTarget | undefined {
  let found: MeasuredTarget | undefined;
  let leastMs = Number.POSITIVE_INFINITY;
  for (const target of targets) {
    const ms = target.costMs(candidates);
    if (found !== undefined && !(ms < leastMs)) continue;
    found = target;
    leastMs = ms;
  }
  return found;
}

interface VersionCost {
  readonly model: CostModel;
  readonly rows: number;
}

function costOf({ targets, typicalRows }: VersionProfile, kernel: string, memory: string): VersionCost[] {
  const target = targets.find((each) => each.kernel === kernel && each.memory === memory);
  return target === undefined ? [] : [{ model: costModelOf(target), rows: typicalRows }];
}

function costModelOf({ features, coefficients }: TargetProfile): CostModel {
  return parseCostModel({ format: 1, unit: 'ms', features, coefficients });
}

function geometricMean(costs: readonly VersionCost[], candidates: number): number {
  const logs = costs.map(({ model, rows }) => Math.log(predictCostMs(model, candidates, rows)));
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
}

function commonVersions(profiles: readonly AcceleratorProfile[]): Set<string> {
  const named = profiles.map(({ versions }) => new Set(versions.map(nameOf)));
  return new Set([...(named[0] ?? [])].filter((name) => named.every((names) => names.has(name))));
}

function nameOf({ family, version }: VersionProfile): string {
  return `${family}@${version}`;
}
