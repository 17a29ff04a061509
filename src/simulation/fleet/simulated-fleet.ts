import type { CapacityClass, Fleet } from '../../core/policy/fleet.ts';
import type { ServiceProfile } from '../../inference/simulated/profiles.ts';

/** From a moment of the run on, a pool has so many workers. */
export interface CapacityChange {
  readonly atMs: number;
  readonly slots: number;
  /** Workers that go away are told so long before, and finish what they hold; with 0 they are killed. */
  readonly noticeMs: number;
}

export interface SimulatedPool {
  readonly pool: string;
  readonly accelerator: string;
  readonly capacityClass: CapacityClass;
  /** A label: nothing is simulated by it yet. */
  readonly region: string | undefined;
  /** Partitions of its dispatch topic, each with a worker of its own. */
  readonly slots: number;
  /** Work per time against its profile. */
  readonly speed: number;
  /** Its service times; kernels and memory domains are those that the fleet lets its class have. */
  readonly profile: ServiceProfile;
  /** By time. Before the first all slots have a worker. */
  readonly capacity: readonly CapacityChange[];
}

/** What a simulation runs on. */
export interface SimulatedFleet {
  /** As policies are checked against. */
  readonly fleet: Fleet;
  readonly pools: readonly SimulatedPool[];
  /** How long a message is under way: to the broker, and from it. */
  readonly hopMs: number;
  readonly routers: number;
  readonly extractors: number;
  /** Of ingress, features, acknowledgements and results. */
  readonly partitions: number;
}
