import { expect, it } from 'vitest';
import { PARTITION_BYTES_MAX, TURNS_PER_FETCH } from '../../src/adapters/kafka/fetch-order.ts';
import type { InboundRecord, TopicPartition } from '../../src/ports/message-bus.ts';
import { type Client, kafkaFactory, sharedBrokers } from '../conformance/kafka.fixture.ts';
import { createTopic, Recorder, uniqueName } from '../conformance/message-bus.fixture.ts';

const PARTITIONS_PER_TOPIC = 6;
const RECORDS = 15;
const RECORD_BYTES = 200 * 1_024;
const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];

const nameOf = ({ topic, partition }: TopicPartition) => `${topic}/${partition}`;

/** How many records of any one other partition came at most before a record of this one, since the one before it. */
function mostBetween(records: readonly InboundRecord[], partition: string): number {
  const names = records.map(nameOf);
  let most = 0;
  let since = new Map<string, number>();
  for (const name of names.slice(0, names.lastIndexOf(partition))) {
    if (name === partition) since = new Map();
    else since.set(name, (since.get(name) ?? 0) + 1);
    most = Math.max(most, since.get(name) ?? 0);
  }
  return most;
}

it.each(CLIENTS)(
  'on %s all partitions of a large backlog are served in turn, though a fetch has room for some of them only',
  async (client) => {
    const run = kafkaFactory(client, sharedBrokers());
    try {
      const bus = await run.connect();
      const topics = [
        await createTopic(run, bus, PARTITIONS_PER_TOPIC),
        await createTopic(run, bus, PARTITIONS_PER_TOPIC),
      ];
      const partitions = topics.flatMap((topic) =>
        Array.from({ length: PARTITIONS_PER_TOPIC }, (_, partition) => ({ topic, partition })),
      );
      const value = Buffer.alloc(RECORD_BYTES, 'v');
      await Promise.all(
        partitions.flatMap((each) =>
          Array.from({ length: RECORDS }, () => bus.produce({ ...each, key: null, value })),
        ),
      );
      const group = uniqueName('group');
      const options = { group, topics, startAt: 'earliest' as const };
      const { records } = await Recorder.subscribe(run, bus, options, 'acknowledging');
      await run.eventually(() => records.length === partitions.length * RECORDS, 'all records arrived');
      // Each is served by the second fetch that asks for it, and before whoever was served after it: nobody else has more than two turns meanwhile.
      const fetches = Math.ceil(partitions.length / TURNS_PER_FETCH);
      const recordsPerTurn = Math.floor(PARTITION_BYTES_MAX / RECORD_BYTES);
      for (const name of partitions.map(nameOf)) {
        expect(mostBetween(records, name)).toBeLessThanOrEqual(fetches * recordsPerTurn);
      }
    } finally {
      await run.close();
    }
  },
);
