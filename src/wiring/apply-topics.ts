import type { Settings } from '../config/settings.ts';
import { topicSpecs } from '../contracts/topic-specs.ts';
import { topicNames } from '../contracts/topics.ts';
import { fleetPools } from '../core/policy/fleet-pools.ts';
import type { MessageBus, TopicSpec } from '../ports/message-bus.ts';
import { readFleet } from './policy-files.ts';

/** Every topic that the settings and the fleet ask for. */
export function plannedTopics(settings: Settings): TopicSpec[] {
  return topicSpecs({
    topics: topicNames(settings.prefix),
    partitions: settings.kafka.partitions,
    replication: settings.kafka.replication,
    pools: new Map(fleetPools(readFleet(settings)).map(({ pool }) => [pool, settings.slotsPerPool])),
    tenants: settings.tenants,
  });
}

/** Creates what is missing and touches nothing else; answers the names created. */
export function applyTopics(settings: Settings, bus: MessageBus): Promise<readonly string[]> {
  return bus.admin.createTopics(plannedTopics(settings));
}
