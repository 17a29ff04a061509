import type { PoolStatus } from '../../contracts/records.ts';
import type { FamilyContract, FamilyVersion } from '../../core/request/family.ts';
import { compareVersions } from '../../core/routing/choose.ts';
import type { Cancel } from '../../ports/clock.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';

const LOOK_EVERY_MS = 1_000;

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
    for (const [family, contract] of folder) families.set(family, withReady(contract, byWorker));
  };
  const take = (status: PoolStatus): void => {
    const ready = readyOf(status);
    const key = ready.map(({ family, version }) => `${family}@${version}`).join();
    const known = byWorker.get(status.worker);
    if (known !== undefined) known.seenAtMs = deps.clock.monotonicMs();
    if ((known?.key ?? '') === key) return;
    byWorker.set(status.worker, { key, ready, seenAtMs: deps.clock.monotonicMs() });
    rebuild();
    lookLater();
  };
  const gone = (worker: string): void => {
    if (byWorker.delete(worker)) rebuild();
  };
  let cancelLook: Cancel | undefined;
  const lookLater = (): void => {
    if (byWorker.size > 0) cancelLook ??= deps.clock.after(LOOK_EVERY_MS, look);
  };
  const look = (): void => {
    cancelLook = undefined;
    const silentSinceMs = deps.clock.monotonicMs() - forgetWorkersMs;
    for (const [worker, { seenAtMs }] of byWorker) if (seenAtMs < silentSinceMs) gone(worker);
    lookLater();
  };
  const reader = await follow(deps, 'pool-status', 'PoolStatus', take, { gone });
  return {
    families,
    async close() {
      await reader.close();
      cancelLook?.();
    },
  };
}

function readyOf({ published }: PoolStatus): ReadyVersion[] {
  return published
    .filter(({ status }) => status === 'READY')
    .map(({ family, version, variant }) => ({
      family,
      version,
      variant: variant === 'ENHANCED' ? 'enhanced' : 'baseline',
    }));
}

/** The family with the versions of the folder, and those that some worker has ready. */
function withReady(contract: FamilyContract, byWorker: ReadonlyMap<string, WorkerVersions>): FamilyContract {
  const versions = [...contract.versions];
  for (const { ready } of byWorker.values())
    for (const { family, version, variant } of ready)
      if (family === contract.family && !versions.some((known) => known.version === version))
        versions.push({ version, variant });
  return { ...contract, versions: versions.sort((a, b) => compareVersions(a.version, b.version)) };
}
