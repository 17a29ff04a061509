import type { TopicSpec } from '../ports/message-bus.ts';
import {
  DEAD_LETTER_RETENTION_MS,
  DISPATCH_TOPIC,
  TOPICS,
  type TopicDefinition,
  type TopicKey,
  type TopicNames,
} from './topics.ts';

export interface TopicPlanOptions {
  topics: TopicNames;
  /** Partitions of the topics that are many-partitioned. */
  partitions: number;
  replication: number;
  /** Pool → its number of slots. */
  pools: ReadonlyMap<string, number>;
  tenants: readonly string[];
}

/** Requests may be so large; what millrace wraps around one, and dead letters with their headers, must still fit. */
const REQUEST_BYTES_MAX = 1_048_576;
const WRAPPED_BYTES_MAX = 1_572_864;

/** Every topic that an installation needs, with its dead-letter topics. */
export function topicSpecs(options: TopicPlanOptions): TopicSpec[] {
  const { topics } = options;
  const fixed = (Object.keys(TOPICS) as TopicKey[]).map((key) =>
    specOf(topics.fixed(key), TOPICS[key], options),
  );
  const tenants = options.tenants.map((tenant) => specOf(topics.ingress(tenant), TOPICS.ingress, options));
  const dispatch = [...options.pools].map(([pool, slots]) =>
    specOf(topics.dispatch(pool), { ...DISPATCH_TOPIC, partitions: slots }, options),
  );
  const sources = [
    topics.fixed('features'),
    topics.ingress(),
    ...options.tenants.map((tenant) => topics.ingress(tenant)),
    ...[...options.pools.keys()].map((pool) => topics.dispatch(pool)),
  ];
  return [
    ...fixed,
    ...tenants,
    ...dispatch,
    ...sources.map((source) => deadLetterSpec(topics.deadLetter(source), options.replication)),
  ];
}

/** Topic → definition of what its values are, for registering schemas. */
export function recordTopics(
  options: Pick<TopicPlanOptions, 'topics' | 'tenants'> & { pools: Iterable<string> },
): Map<string, TopicDefinition> {
  const { topics } = options;
  return new Map<string, TopicDefinition>([
    ...(Object.keys(TOPICS) as TopicKey[]).map((key): [string, TopicDefinition] => [
      topics.fixed(key),
      TOPICS[key],
    ]),
    ...options.tenants.map((tenant): [string, TopicDefinition] => [topics.ingress(tenant), TOPICS.ingress]),
    ...[...options.pools].map((pool): [string, TopicDefinition] => [topics.dispatch(pool), DISPATCH_TOPIC]),
  ]);
}

function specOf(name: string, definition: TopicDefinition, options: TopicPlanOptions): TopicSpec {
  const bytesMax = definition.record === 'ScoreRequest' ? REQUEST_BYTES_MAX : WRAPPED_BYTES_MAX;
  return {
    name,
    partitions: definition.partitions === 'many' ? options.partitions : definition.partitions,
    replication: options.replication,
    config: {
      ...baseConfig(options.replication),
      ...retentionOf(definition),
      'max.message.bytes': String(bytesMax),
      ...(definition.compacted
        ? {
            'cleanup.policy': 'compact',
            'segment.ms': '600000',
            'min.cleanable.dirty.ratio': '0.1',
            'delete.retention.ms': '60000',
          }
        : {}),
    },
  };
}

/** What is kept for ever is so whatever size the cluster lets its other topics have. */
function retentionOf({ retentionMs }: TopicDefinition): Record<string, string> {
  return retentionMs === Number.POSITIVE_INFINITY
    ? { 'retention.ms': '-1', 'retention.bytes': '-1' }
    : { 'retention.ms': String(retentionMs) };
}

function deadLetterSpec(name: string, replication: number): TopicSpec {
  return {
    name,
    partitions: 1,
    replication,
    config: {
      ...baseConfig(replication),
      'retention.ms': String(DEAD_LETTER_RETENTION_MS),
      'max.message.bytes': String(WRAPPED_BYTES_MAX),
    },
  };
}

function baseConfig(replication: number): Record<string, string> {
  return { 'message.timestamp.type': 'LogAppendTime', 'min.insync.replicas': replication >= 3 ? '2' : '1' };
}
