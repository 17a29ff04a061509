import { type Admin, type Consumer, Kafka, logLevel } from 'kafkajs';
import { applyPatches } from '../adapters/kafka/kafkajs/patches.ts';
import { MillraceError } from '../core/errors.ts';

const COORDINATOR_PARTITIONS = 8;
const TOPIC = 'millrace-warm-up';
const TRIES = 5;
const JOIN_MS = 20_000;
const RETRY = { initialRetryTime: 20, factor: 0, multiplier: 1.5, maxRetryTime: 500, retries: 40 };

/**
 * Makes a fresh cluster do once what clients do first, and leaves nothing behind but its internal topics: coordinators that
 * are still loading answer with errors, which clients log. Touches every partition of both coordinator topics.
 */
export async function warmUp(brokers: readonly string[]): Promise<void> {
  applyPatches();
  const kafka = new Kafka({
    clientId: 'millrace-warm-up',
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    retry: RETRY,
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1 }], waitForLeaders: true });
    await Promise.all([warmGroups(kafka, admin), warmTransactions(kafka)]);
    await admin.deleteGroups([TOPIC]);
    await admin.deleteTopics({ topics: [TOPIC] });
  } finally {
    await admin.disconnect();
  }
}

async function warmGroups(kafka: Kafka, admin: Admin): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await warmGroup(kafka);
      break;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
  await Promise.all(spreadNames().map((groupId) => admin.fetchOffsets({ groupId })));
}

async function warmGroup(kafka: Kafka): Promise<void> {
  const consumer = kafka.consumer({ groupId: TOPIC, maxWaitTimeInMs: 100 });
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [TOPIC], fromBeginning: true });
    const joined = whenJoined(consumer);
    await Promise.all([joined, consumer.run({ autoCommit: false, eachMessage: async () => undefined })]);
    await consumer.commitOffsets([{ topic: TOPIC, partition: 0, offset: '0' }]);
  } finally {
    await consumer.disconnect();
  }
}

/** A consumer that crashes for good, as on a coordinator in the middle of its start, closes its connections and never joins. */
function whenJoined(consumer: Consumer): Promise<void> {
  const { GROUP_JOIN, CRASH } = consumer.events;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (why: string, cause?: unknown) =>
    reject(
      new MillraceError('STACK_UNAVAILABLE', `no consumer could join a group of the new broker: ${why}`, {
        cause,
      }),
    );
  const timer = setTimeout(() => failed(`none joined within ${JOIN_MS / 1_000} s`), JOIN_MS);
  consumer.on(GROUP_JOIN, () => resolve());
  consumer.on(CRASH, ({ payload: { error, restart } }) => {
    if (!restart) failed(error.message, error);
  });
  return promise.finally(() => clearTimeout(timer));
}

async function warmTransactions(kafka: Kafka): Promise<void> {
  await Promise.all(
    spreadNames().map(async (transactionalId) => {
      const producer = kafka.producer({ transactionalId, maxInFlightRequests: 1, idempotent: true });
      await producer.connect();
      try {
        const transaction = await producer.transaction();
        await transaction.send({ topic: TOPIC, messages: [{ key: 'warm', value: 'up', partition: 0 }] });
        await transaction.commit();
      } finally {
        await producer.disconnect();
      }
    }),
  );
}

/** Names that lie on all partitions of a coordinator topic: the last character is the last term of Java's string hash. */
function spreadNames(): string[] {
  return Array.from({ length: COORDINATOR_PARTITIONS }, (_, index) => `${TOPIC}-${index}`);
}
