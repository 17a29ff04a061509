import type { PoolStatus } from '../../contracts/records.ts';
import type { WorkerStatus } from '../../core/routing/slot.ts';

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
    models: status.models.map((model) => ({
      family: model.family,
      version: model.version,
      variant: model.variant === 'ENHANCED' ? 'enhanced' : 'baseline',
    })),
    speed: status.speed,
    batchRequests: status.batchRequests,
    queuedPredictedMs: status.queuedPredictedMs,
  };
}
