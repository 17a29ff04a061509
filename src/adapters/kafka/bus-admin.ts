import type { BusAdmin } from '../../ports/message-bus.ts';
import { awaitConfiguration } from './await-configuration.ts';
import type { KafkaClient } from './client.ts';

export function createBusAdmin(client: KafkaClient): BusAdmin {
  return {
    async createTopics(specs) {
      const existing = new Set(await client.listTopics());
      const missing = specs.filter(({ name }) => !existing.has(name));
      // Somebody else may create the same topics just now: then they are not ours.
      const created = await Promise.all(
        missing.map(async (spec) => ((await client.createTopic(spec)) ? [spec.name] : [])),
      );
      return created.flat();
    },
    async growTopic(topic, partitions) {
      const present = (await client.leaders([topic])).get(topic)?.length ?? 0;
      if (present < partitions) await client.growTopic(topic, partitions);
    },
    async topicConfigs(topics) {
      const existing = new Set(await client.listTopics());
      const present = topics.filter((topic) => existing.has(topic));
      return present.length === 0 ? new Map() : await client.topicConfigs(present);
    },
    async configureTopic(topic, config) {
      await client.configureTopic(topic, config);
      await awaitConfiguration(client, topic, config);
    },
    deleteTopics: (topics) => client.deleteTopics(topics),
    listTopics: () => client.listTopics(),
    watermarks: (topic) => client.watermarks(topic),
    committed: (group, topic) => client.committed(group, topic),
  };
}
