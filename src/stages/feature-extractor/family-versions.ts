import type { PoolStatus } from '../../contracts/records.ts';
import type { FamilyContract, FamilyVersion } from '../../core/request/family.ts';
import { compareVersions } from '../../core/routing/choose.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';

const FORGET_EVERY_MS = 1_000;

/** The families of the model folder, with the versions that workers have ready on top. */
export interface FamilyVersions {
  /** Changes as workers come to have versions. */
  readonly families: ReadonlyMap<string, FamilyContract>;
  close(): Promise<void>;
}

interface ReadyVersion extends FamilyVersion {
  family: string;
}

interface WorkerVersions {
  /** Tells whether a heartbeat says anything new. */
  key: string;
  ready: readonly ReadyVersion[];
  seenAtMs: number;
}

/**
 * Follows the heartbeats, so that a request may pin a published version once a worker can run it. What a request must look like is the same for
 * every version of a family: workers refuse one that takes other inputs. A worker that died without a word is forgotten after a while: a request
 * that pins what only it had is refused then, and does not wait for nobody.
 */
export async function followFamilyVersions(
  deps: StageDeps,
  folder: ReadonlyMap<string, FamilyContract>,
  { forgetWorkersMs }: { forgetWorkersMs: number },
): Promise<FamilyVersions> {
  const families = new Map(folder);
  const byWorker = new Map<string, WorkerVersions>();
  const rebuild = (): void => {
    for (const [family, contract] of folder) {
      const versions = [...contract.versions];
      for (const { ready } of byWorker.values())
        for (const one of ready)
          if (one.family === family && !versions.some(({ version }) => version === one.version))
            versions.push({ version: one.version, variant: one.variant });
      versions.sort((a, b) => compareVersions(a.version, b.version));
      families.set(family, { ...contract, versions });
    }
  };
  const take = ({ worker, published }: PoolStatus): void => {
    const ready = published.filter(({ status }) => status === 'READY');
    const key = ready.map(({ family, version }) => `${family}@${version}`).join();
    const known = byWorker.get(worker);
    if (known !== undefined) known.seenAtMs = deps.clock.monotonicMs();
    if ((known?.key ?? '') === key) return;
    byWorker.set(worker, {
      key,
      seenAtMs: deps.clock.monotonicMs(),
      ready: ready.map(({ family, version, variant }) => ({
        family,
        version,
        variant: variant === 'ENHANCED' ? 'enhanced' : 'baseline',
      })),
    });
    rebuild();
  };
  const gone = (worker: string): void => {
    if (byWorker.delete(worker)) rebuild();
  };
  const forget = (): void => {
    const silentSinceMs = deps.clock.monotonicMs() - forgetWorkersMs;
    for (const [worker, { seenAtMs }] of byWorker) if (seenAtMs < silentSinceMs) gone(worker);
  };
  const reader = await follow(deps, 'pool-status', 'PoolStatus', take, { gone });
  const cancel = deps.clock.every(FORGET_EVERY_MS, forget);
  return {
    families,
    close() {
      cancel();
      return reader.close();
    },
  };
}
