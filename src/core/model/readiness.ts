import { type ModelChoice, VARIANTS } from '../policy/document.ts';
import { versionName } from './published-model.ts';

export const VERSION_STATES = ['LOADING', 'READY', 'FAILED'] as const;

/** What one live worker says of one version. */
export interface VersionHeld {
  readonly family: string;
  readonly version: string;
  /** Known once it is READY. */
  readonly variant: 'baseline' | 'enhanced';
  readonly status: (typeof VERSION_STATES)[number];
  /** Of FAILED. */
  readonly reason: string;
}

export interface WorkerVersions {
  readonly worker: string;
  readonly pool: string;
  readonly versions: readonly VersionHeld[];
}

/** A version that a policy names. */
export interface NamedVersion {
  readonly family: string;
  readonly version: string;
  /** The variant that it is named for; undefined where it is meant for both. */
  readonly variant: 'baseline' | 'enhanced' | undefined;
}

export function namedVersions(models: ReadonlyMap<string, ModelChoice>): NamedVersion[] {
  return [...models].flatMap(([family, choice]): NamedVersion[] => {
    const { baseline, enhanced } = choice;
    if (baseline !== undefined && baseline === enhanced)
      return [{ family, version: baseline, variant: undefined }];
    return VARIANTS.flatMap((variant) => {
      const version = choice[variant];
      return version === undefined ? [] : [{ family, version, variant }];
    });
  });
}

/**
 * Why the versions cannot serve on these pools, in sentences that say which worker said what; none where they can.
 *
 * @param workers all live ones; those of other pools are passed over
 * @param how `all`: every worker must be READY. `some`: a worker that is still LOADING is no reason while another one of its pool is READY; workers
 *   come and go
 */
export function versionsNotReady(
  named: readonly NamedVersion[],
  pools: ReadonlySet<string>,
  workers: readonly WorkerVersions[],
  how: 'all' | 'some',
): string[] {
  const able = workers.filter(({ pool }) => pools.has(pool)).sort((a, b) => (a.worker < b.worker ? -1 : 1));
  return named.flatMap((version) => {
    if (able.length === 0)
      return [`no live worker of ${list(pools)} has told that it can run ${versionName(version)}`];
    const readyPools = new Set(
      able.filter((worker) => heldBy(worker, version)?.status === 'READY').map(({ pool }) => pool),
    );
    return able.flatMap((worker) => {
      const problem = problemOf(worker, version);
      if (problem === undefined) return [];
      return how === 'some' && problem.passes && readyPools.has(worker.pool) ? [] : [problem.text];
    });
  });
}

function problemOf(
  worker: WorkerVersions,
  named: NamedVersion,
): { text: string; passes: boolean } | undefined {
  const held = heldBy(worker, named);
  const name = versionName(named);
  const where = `${worker.worker} (pool ${worker.pool})`;
  switch (held?.status) {
    case undefined:
      return { text: `${where} has not heard of ${name}`, passes: true };
    case 'LOADING':
      return { text: `${where} is still loading ${name}`, passes: true };
    case 'FAILED':
      return { text: `${where} refuses ${name}: ${held.reason}`, passes: false };
    case 'READY':
      if (named.variant === undefined || named.variant === held.variant) return undefined;
      return {
        text: `${where} says that ${name} is ${held.variant}, and the policy names it for ${named.variant}`,
        passes: false,
      };
  }
}

function heldBy({ versions }: WorkerVersions, { family, version }: NamedVersion): VersionHeld | undefined {
  return versions.find((held) => held.family === family && held.version === version);
}

function list(pools: ReadonlySet<string>): string {
  return pools.size === 0 ? 'any pool' : [...pools].join(', ');
}
