import type { BusAdmin, TopicConfig, TopicSpec, Watermarks } from '../../ports/message-bus.ts';
import type { Broker } from './broker.ts';

/** Runs an action at the broker, once it can be reached. */
export type Request = <T>(action: () => T) => Promise<T>;

export function brokerAdmin(broker: Broker, request: Request): BusAdmin {
  return {
    createTopics: (specs: readonly TopicSpec[]) =>
      request(() => specs.filter((spec) => broker.createTopic(spec)).map((spec) => spec.name)),
    growTopic: (topic: string, partitions: number) => request(() => broker.growTopic(topic, partitions)),
    topicConfigs: (topics: readonly string[]) =>
      request(() => new Map(topics.flatMap((topic) => configOf(broker, topic)))),
    configureTopic: (topic: string, config: TopicConfig) =>
      request(() => broker.topic(topic).configure(config)),
    deleteTopics: (topics: readonly string[]) =>
      request(() => {
        for (const topic of topics) broker.deleteTopic(topic);
      }),
    listTopics: () => request(() => broker.topicNames()),
    watermarks: (topic: string): Promise<readonly Watermarks[]> => request(() => broker.watermarks(topic)),
    committed: (group: string, topic: string) => request(() => broker.committed(group, topic)),
  };
}

function configOf(broker: Broker, name: string): [string, TopicConfig][] {
  const topic = broker.findTopic(name);
  return topic === undefined ? [] : [[name, topic.config]];
}
