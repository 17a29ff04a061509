import type { PoolStatus } from '../../contracts/records.ts';
import {
  namedVersions,
  type VersionHeld,
  versionsNotReady,
  type WorkerVersions,
} from '../../core/model/readiness.ts';
import { namedAccelerators } from '../../core/policy/document.ts';
import type { PoolsOf } from '../../core/routing/choose.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';
import { LiveWorkers } from './live-workers.ts';
import type { CheckedPolicy } from './read-command.ts';

/** Knows which workers can run which model versions. */
export interface FleetVersions {
  /** Whether every live worker must have been heard of by now. */
  hasHeard(): boolean;
  /** Resolves once that is so. */
  heard(): Promise<void>;
  /**
   * Why the fleet cannot run the versions that a policy names, on the pools that it would use; none where it can, or names none.
   * @param how see `versionsNotReady`
   */
  notReady(policy: Pick<CheckedPolicy, 'models' | 'tree'>, how: 'all' | 'some'): string[];
  close(): Promise<void>;
}

/** Several heartbeats. */
const LISTEN_MS = 1_000;

/** Follows the heartbeats from now on. */
export async function openFleetVersions(deps: StageDeps, poolsOf: PoolsOf): Promise<FleetVersions> {
  const { clock } = deps;
  const workers = new LiveWorkers<WorkerVersions>();
  const reader = await follow(
    deps,
    'pool-status',
    'PoolStatus',
    (status) => workers.heard(status.worker, versionsOf(status), clock.monotonicMs()),
    { gone: (worker) => workers.gone(worker) },
  );
  const heardMs = clock.monotonicMs() + LISTEN_MS;
  return {
    hasHeard: () => clock.monotonicMs() >= heardMs,
    async heard() {
      const waitMs = heardMs - clock.monotonicMs();
      if (waitMs > 0) await new Promise<void>((resolve) => clock.after(waitMs, resolve));
    },
    notReady(policy, how) {
      const named = namedVersions(policy.models);
      if (named.length === 0) return [];
      return versionsNotReady(
        named,
        new Set(namedAccelerators(policy).flatMap(poolsOf)),
        workers.live(clock.monotonicMs()),
        how,
      );
    },
    close: () => reader.close(),
  };
}

function versionsOf({ worker, pool, models, published }: PoolStatus): WorkerVersions {
  const own = models.map(({ family, version, variant }): VersionHeld => {
    const kind = variant === 'ENHANCED' ? 'enhanced' : 'baseline';
    return { family, version, variant: kind, status: 'READY', reason: '' };
  });
  const others = published.map(({ family, version, variant, status, reason }): VersionHeld => {
    const kind = variant === 'ENHANCED' ? 'enhanced' : 'baseline';
    return { family, version, variant: kind, status: status === 'UNKNOWN' ? 'LOADING' : status, reason };
  });
  // What was published under a name that the folder has stands first: it may be refused for that.
  return { worker, pool, versions: [...others, ...own] };
}
