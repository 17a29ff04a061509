import type { Kafka, Message, Producer, RecordMetadata } from 'kafkajs';
import type { PartitionBatch, SendOutcome } from '../client.ts';
import { byTopic, PartitionTable } from '../partition-table.ts';
import { isOutOfStep, sendOutcomeOf } from '../send-outcome.ts';
import { errorFromCode, type ProduceResponse } from './internals.ts';
import { responseOf } from './patches.ts';

const METADATA_AGE_MAX_MS = 5_000;
const NOT_ROUTED: SendOutcome = {
  status: 'delayed',
  error: new Error('kafkajs does not know the partition yet'),
};

/** One kafkajs producer that attempts once and tells what each partition was answered. */
export class KafkaJsSender {
  readonly #kafka: Kafka;
  readonly #idempotent: boolean;
  readonly #requestTimeoutMs: number;
  #producer: Promise<Producer> | undefined;

  constructor(kafka: Kafka, options: { idempotent: boolean; requestTimeoutMs: number }) {
    this.#kafka = kafka;
    this.#idempotent = options.idempotent;
    this.#requestTimeoutMs = options.requestTimeoutMs;
  }

  async send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    const producer = await this.#connected();
    try {
      const stored = await producer.sendBatch({
        acks: -1,
        timeout: this.#requestTimeoutMs,
        topicMessages: toTopicMessages(batches),
      });
      return outcomesOf(batches, stored);
    } catch (error) {
      const response = responseOf<ProduceResponse>(error);
      if (response === undefined) throw error;
      const answers = response.topics.flatMap(({ topicName, partitions }) =>
        partitions.map((each) => ({ topicName, ...each })),
      );
      if (this.#idempotent) return await this.#repeatAll(batches, answers);
      return outcomesOf(batches, answers);
    }
  }

  /** Throws the connections away. An idempotent producer keeps them, for the sake of its identity. */
  async reset(): Promise<void> {
    if (!this.#idempotent) await this.close();
  }

  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = undefined;
    await producer?.then(
      (each) => each.disconnect(),
      () => undefined,
    );
  }

  /**
   * After an error kafkajs takes back the sequence numbers of the whole request, also of partitions that stored it. These are sent again as they were,
   * and the broker drops them: other records under the same numbers would be dropped in their place.
   */
  async #repeatAll(
    batches: readonly PartitionBatch[],
    answers: readonly RecordMetadata[],
  ): Promise<readonly SendOutcome[]> {
    if (answers.some(({ errorCode }) => isOutOfStep(errorFromCode(errorCode).type ?? ''))) await this.close();
    const error = new Error('another partition of the request was refused');
    return outcomesOf(batches, answers).map((outcome) =>
      outcome.status === 'stored' ? { status: 'delayed', error } : outcome,
    );
  }

  #connected(): Promise<Producer> {
    this.#producer ??= this.#connect().catch((error: unknown) => {
      this.#producer = undefined;
      throw error;
    });
    return this.#producer;
  }

  async #connect(): Promise<Producer> {
    const producer = this.#kafka.producer({
      // Every record names its partition: a partitioner that chose again on a retry would skip brokers that already acknowledged.
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition ?? 0,
      metadataMaxAge: METADATA_AGE_MAX_MS,
      allowAutoTopicCreation: false,
      idempotent: this.#idempotent,
      // kafkajs makes no idempotent producer that never retries; its own retry repeats the batch as it was.
      retry: { retries: this.#idempotent ? 1 : 0 },
    });
    await producer.connect();
    return producer;
  }
}

/**
 * An outbound record has the shape of a kafkajs message, so none is made. kafkajs groups messages by partition with `reduce`, copying an array that
 * grows for each of them; here they are grouped already, and that is what `reduce` answers.
 */
function toTopicMessages(batches: readonly PartitionBatch[]): { topic: string; messages: Message[] }[] {
  return [...byTopic(batches)].map(([topic, own]) => {
    const byPartition = Object.fromEntries(own.map(({ partition, records }) => [partition, records]));
    const messages: Message[] = [];
    Object.defineProperty(messages, 'reduce', { value: () => byPartition });
    return { topic, messages };
  });
}

/** A partition that is not in the answer was not sent: kafkajs leaves out what its metadata lacks, and reports success. */
function outcomesOf(batches: readonly PartitionBatch[], answers: readonly RecordMetadata[]): SendOutcome[] {
  const byPartition = new PartitionTable<RecordMetadata>();
  for (const answer of answers) byPartition.set(answer.topicName, answer.partition, answer);
  return batches.map(({ topic, partition }) => {
    const answer = byPartition.get(topic, partition);
    if (answer === undefined) return NOT_ROUTED;
    if (answer.errorCode === 0) return { status: 'stored', baseOffset: Number(answer.baseOffset ?? -1) };
    const error = errorFromCode(answer.errorCode);
    return sendOutcomeOf(error.type ?? '', error);
  });
}
