import { expect, it, vi } from 'vitest';
import { createBusAdmin } from '../../../../src/adapters/kafka/bus-admin.ts';
import type { KafkaClient } from '../../../../src/adapters/kafka/client.ts';
import type { TopicConfig } from '../../../../src/ports/message-bus.ts';

it('has configured a topic once the broker that is asked tells the new values', async () => {
  const told: TopicConfig[] = [{ 'retention.ms': '1' }, { 'retention.ms': '1' }, { 'retention.ms': '2' }];
  const configureTopic = vi.fn<KafkaClient['configureTopic']>(async () => {});
  const topicConfigs = vi.fn<KafkaClient['topicConfigs']>(
    async ([topic = '']) => new Map([[topic, told.shift() ?? {}]]),
  );
  const admin = createBusAdmin({ configureTopic, topicConfigs } as Partial<KafkaClient> as KafkaClient);
  await admin.configureTopic('topic', { 'retention.ms': '2' });
  expect(configureTopic).toHaveBeenCalledExactlyOnceWith('topic', { 'retention.ms': '2' });
  expect(topicConfigs).toHaveBeenCalledTimes(3);
});
