import type { ModelServed, PoolStatus, PublishedVersion } from '../../contracts/records.ts';
import type { VersionServed, WorkerStatus } from '../../core/routing/slot.ts';

/** A heartbeat in routing's words. */
export function workerStatusOf(status: PoolStatus): WorkerStatus {
  return {
    pool: status.pool,
    capacityClass: status.capacityClass === 'OPPORTUNISTIC' ? 'opportunistic' : 'dedicated',
    accelerator: status.accelerator,
    worker: status.worker,
    incarnation: status.incarnation,
    sequence: status.sequence,
    slots: status.slots,
    kernels: status.kernels,
    memories: status.memories,
    models: [
      ...status.models.map((model) => servedVersion(model, false)),
      ...status.published.filter(isReady(status)).map((model) => servedVersion(model, true)),
    ],
    speed: status.speed,
    batchRequests: status.batchRequests,
    queuedPredictedMs: status.queuedPredictedMs,
  };
}

function servedVersion({ family, version, variant }: ModelServed, isPublished: boolean): VersionServed {
  return { family, version, variant: variant === 'ENHANCED' ? 'enhanced' : 'baseline', isPublished };
}

/** One that is in the folder as well serves whoever names no version, too. */
function isReady({ models }: PoolStatus) {
  return ({ family, version, status }: PublishedVersion): boolean =>
    status === 'READY' && !models.some((own) => own.family === family && own.version === version);
}
