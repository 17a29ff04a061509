/**
 * A bare relay on kafkajs, as a process: each hop consumes a topic and sends what it fetched to the same partition of the next one, then commits.
 * No decoding, no deciding, nothing but the client. Started by subject.ts with its options as JSON.
 */
import kafkajs from 'kafkajs';
import { applyPatches } from '../../src/adapters/kafka/kafkajs/patches.ts';
import { countBuffersInHeapLimit } from '../../src/adapters/system/garbage-collection.ts';

export interface RelayOptions {
  brokers: readonly string[];
  hops: readonly { from: string; to: string; valueBytesMax?: number }[];
  /** As the adapter patches kafkajs, and on a V8 that is set up as the services set it up; otherwise both as they come. */
  patched: boolean;
}

const MAX_WAIT_MS = 100;
const FETCH_BYTES_MAX = 8 * 2 ** 20;
const PARTITIONS_AT_ONCE = 4;
const COMMIT_INTERVAL_MS = 100;

async function relay({ brokers, hops, patched }: RelayOptions): Promise<() => Promise<void>> {
  if (patched) {
    countBuffersInHeapLimit();
    applyPatches();
  }
  const newClient = () =>
    new kafkajs.Kafka({ clientId: 'relay', brokers: [...brokers], logLevel: kafkajs.logLevel.ERROR });
  const producer = newClient().producer({
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  await producer.connect();
  const consumers = hops.map(({ from }) =>
    newClient().consumer({
      groupId: `${from}.relay`,
      maxWaitTimeInMs: MAX_WAIT_MS,
      minBytes: 1,
      maxBytes: FETCH_BYTES_MAX,
    }),
  );
  await Promise.all(
    consumers.map(async (consumer, index) => {
      const { from = '', to = '', valueBytesMax } = hops[index] ?? {};
      await consumer.connect();
      await consumer.subscribe({ topics: [from], fromBeginning: true });
      const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
      await consumer.run({
        autoCommitInterval: COMMIT_INTERVAL_MS,
        partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
        eachBatch: async ({ batch }) => {
          const messages = batch.messages.map(({ key, value }) => ({
            key,
            value: valueBytesMax === undefined ? value : (value?.subarray(0, valueBytesMax) ?? null),
            partition: batch.partition,
          }));
          await producer.send({ topic: to, messages, acks: -1 });
        },
      });
      await joined;
    }),
  );
  return async () => {
    await Promise.all(consumers.map((consumer) => consumer.disconnect()));
    await producer.disconnect();
  };
}

if (import.meta.main) {
  const stop = await relay(JSON.parse(process.argv[2] ?? '') as RelayOptions);
  process.once('disconnect', () => process.exit(1));
  process.once('message', () => void stop().then(() => process.exit(0)));
  process.send?.('ready');
}
