import type { KafkaClient } from './client.ts';

const LEADERS_TIMEOUT_MS = 15_000;
const LEADERS_POLL_MS = 20;

/** Brokers hear of a new topic one after the other: waits until each of its partitions has a leader, or for 15 s. */
export async function awaitLeaders(
  client: Pick<KafkaClient, 'leaders'>,
  topic: string,
  partitions: number,
): Promise<void> {
  const giveUpAt = performance.now() + LEADERS_TIMEOUT_MS;
  for (;;) {
    const leaders = (await client.leaders([topic])).get(topic) ?? [];
    if (leaders.length >= partitions && leaders.every((leader) => leader >= 0)) return;
    if (performance.now() > giveUpAt) return;
    await new Promise((resolve) => setTimeout(resolve, LEADERS_POLL_MS));
  }
}
