import { partitionForKey } from '../core/request/partition.ts';
import type { ControlStore, Lease } from '../ports/control-store.ts';
import type { StageDeps } from '../stages/stage.ts';

const LEASE_TTL_MS = 10_000;
const RENEW_MS = 3_000;

export interface AckPartition {
  partition: number;
  release(): Promise<void>;
}

/**
 * A partition of the acks topic for this router, held by a lease, so that routers do not read each other's acknowledgements.
 * Sharing one is harmless (each takes only its own), so while the store is away, or all are taken, the name's hash decides.
 */
export async function claimAckPartition(
  deps: StageDeps,
  store: ControlStore,
  router: string,
): Promise<AckPartition> {
  const partitions = await deps.bus.partitionCount(deps.topics.fixed('acks'));
  const preferred = partitionForKey(Buffer.from(router), partitions);
  try {
    const order = Array.from({ length: partitions }, (_, step) => (preferred + step) % partitions);
    const names = order.map((partition) => `${deps.topics.prefix}/acks/${partition}`);
    const lease = await store.acquireLease(names, router, LEASE_TTL_MS);
    const partition = order[lease === undefined ? -1 : names.indexOf(lease.name)];
    if (lease !== undefined && partition !== undefined) return hold(deps, lease, partition);
  } catch (error) {
    deps.telemetry.logger.warn(
      { error: String(error) },
      'no lease of an ack partition, since the store does not answer; sharing one',
    );
  }
  return { partition: preferred, release: async () => {} };
}

function hold(deps: StageDeps, lease: Lease, partition: number): AckPartition {
  const renew = (): void => {
    lease
      .renew()
      .catch((error: unknown) =>
        deps.telemetry.logger.debug(
          { lease: lease.name, error: String(error) },
          'the lease could not be renewed',
        ),
      );
  };
  const cancel = deps.clock.every(RENEW_MS, renew);
  return {
    partition,
    async release() {
      cancel();
      await lease
        .release()
        .catch((error: unknown) =>
          deps.telemetry.logger.debug(
            { lease: lease.name, error: String(error) },
            'the lease could not be released; it lapses',
          ),
        );
    },
  };
}
