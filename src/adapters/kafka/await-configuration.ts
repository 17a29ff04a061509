import type { TopicConfig } from '../../ports/message-bus.ts';
import type { KafkaClient } from './client.ts';

const CONFIGURED_TIMEOUT_MS = 5_000;
const CONFIGURED_POLL_MS = 20;

/**
 * Brokers hear of a topic's new values one after the other, after they were taken: waits until these are told, or for 5 s. Without it whoever asks at
 * once is told the old ones, and where all own values are set together (as kafkajs does) would put those back.
 */
export async function awaitConfiguration(
  client: Pick<KafkaClient, 'topicConfigs'>,
  topic: string,
  config: TopicConfig,
): Promise<void> {
  const giveUpAt = performance.now() + CONFIGURED_TIMEOUT_MS;
  for (;;) {
    const present = (await client.topicConfigs([topic])).get(topic);
    if (Object.entries(config).every(([name, value]) => present?.[name] === value)) return;
    // A broker may write a value in another way than it was given.
    if (performance.now() > giveUpAt) return;
    await new Promise((resolve) => setTimeout(resolve, CONFIGURED_POLL_MS));
  }
}
