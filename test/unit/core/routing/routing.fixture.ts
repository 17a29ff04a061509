import type { SlotAck, WorkerStatus } from '../../../../src/core/routing/slot.ts';

/** A worker of one slot in the pool `cpu`, that runs ranker@1. */
export function workerStatus(fields: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    pool: 'cpu',
    capacityClass: 'dedicated',
    accelerator: 'cpu',
    worker: 'w1',
    incarnation: 'i1',
    sequence: 1,
    slots: [0],
    kernels: ['dense'],
    memories: ['host'],
    models: [{ family: 'ranker', version: '1', variant: 'baseline', isPublished: false }],
    speed: 1,
    batchRequests: 1,
    queuedPredictedMs: 0,
    ...fields,
  };
}

/** An acknowledgement of that worker, which tells of nothing. */
export function slotAck(fields: Partial<SlotAck>): SlotAck {
  return {
    pool: 'cpu',
    slot: 0,
    incarnation: 'i1',
    completed: [],
    sojournMs: [],
    serviceMs: 0,
    lastSequenceSeen: -1,
    queuedPredictedMs: 0,
    enqueuedPredictedMs: 0,
    batchRequests: 1,
    routers: 1,
    ...fields,
  };
}
