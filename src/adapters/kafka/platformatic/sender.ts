import {
  type initProducerIdV5,
  type MessageRecord,
  NumericMap,
  type produceV11,
  protocolErrors,
  protocolErrorsCodesById,
} from '@platformatic/kafka';
import type { OutboundRecord } from '../../../ports/message-bus.ts';
import type { PartitionBatch, SendOutcome } from '../client.ts';
import { PartitionTable } from '../partition-table.ts';
import { isOutOfStep, sendOutcomeOf } from '../send-outcome.ts';
import { type Cluster, responseOf } from './cluster.ts';

type ProduceResponse = produceV11.ProduceResponse;

const ACKS_ALL = -1;
const SEQUENCE_MAX = 2 ** 31 - 1;
const NOT_ROUTED: SendOutcome = {
  status: 'delayed',
  error: new Error('the partition has no leader that is known'),
};

/** By which brokers know a repeated batch: an identity, and a number per partition that counts its records. */
interface Identity {
  producerId: bigint;
  producerEpoch: number;
  sequences: NumericMap;
}

/** Produce requests, each to the leader of its partitions. */
export class PlatformaticSender {
  readonly #cluster: Cluster;
  readonly #requestTimeoutMs: number;
  readonly #idempotent: boolean;
  #identity: Promise<Identity> | undefined;

  constructor(cluster: Cluster, options: { requestTimeoutMs: number; idempotent: boolean }) {
    this.#cluster = cluster;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#idempotent = options.idempotent;
  }

  async send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    const identity = this.#idempotent ? await this.#identify() : undefined;
    const byLeader = Map.groupBy(
      batches,
      ({ topic, partition }) => this.#cluster.topic(topic)?.leaders[partition] ?? -1,
    );
    const outcomes = new PartitionTable<SendOutcome>();
    const sent = [...byLeader]
      .filter(([leader]) => leader >= 0)
      .map(([leader, own]) => this.#sendTo(leader, own, identity, outcomes));
    const settled = await Promise.allSettled(sent);
    const failed = settled.find((result) => result.status === 'rejected');
    if (failed !== undefined && settled.length === 1) throw failed.reason;
    const lost: SendOutcome = failed === undefined ? NOT_ROUTED : { status: 'delayed', error: failed.reason };
    if (identity !== undefined) advance(identity, batches, outcomes);
    return batches.map(({ topic, partition }) => outcomes.get(topic, partition) ?? lost);
  }

  async #sendTo(
    leader: number,
    batches: readonly PartitionBatch[],
    identity: Identity | undefined,
    outcomes: PartitionTable<SendOutcome>,
  ): Promise<void> {
    const messages = batches.flatMap(({ topic, partition, records }) =>
      records.map((record) => toMessage(topic, partition, record)),
    );
    for (const { name, partitionResponses } of (await this.#produce(leader, messages, identity)).responses) {
      for (const { index, errorCode, baseOffset } of partitionResponses) {
        if (errorCode === 0) {
          outcomes.set(name, index, { status: 'stored', baseOffset: Number(baseOffset) });
          continue;
        }
        const id = protocolErrorsCodesById[errorCode] ?? String(errorCode);
        outcomes.set(name, index, sendOutcomeOf(id, toError(id)));
        if (isOutOfStep(id)) this.#identity = undefined;
      }
    }
  }

  async #produce(
    leader: number,
    messages: MessageRecord[],
    identity: Identity | undefined,
  ): Promise<ProduceResponse> {
    try {
      return await this.#cluster.request<ProduceResponse>(
        leader,
        'Produce',
        ACKS_ALL,
        this.#requestTimeoutMs,
        messages,
        identity ?? {},
      );
    } catch (error) {
      const response = responseOf<ProduceResponse>(error);
      if (response === undefined) throw error;
      return response;
    }
  }

  #identify(): Promise<Identity> {
    this.#identity ??= this.#newIdentity().catch((error: unknown) => {
      this.#identity = undefined;
      throw error;
    });
    return this.#identity;
  }

  async #newIdentity(): Promise<Identity> {
    const { producerId, producerEpoch } =
      await this.#cluster.requestAny<initProducerIdV5.InitProducerIdResponse>(
        'InitProducerId',
        null,
        this.#requestTimeoutMs,
        -1n,
        -1,
      );
    return { producerId, producerEpoch, sequences: new NumericMap() };
  }
}

/** What is not stored is sent again under the same numbers. */
function advance(
  { sequences }: Identity,
  batches: readonly PartitionBatch[],
  outcomes: PartitionTable<SendOutcome>,
): void {
  for (const { topic, partition, records } of batches) {
    if (outcomes.get(topic, partition)?.status !== 'stored') continue;
    const key = `${topic}:${partition}`;
    const next = sequences.getWithDefault(key, 0) + records.length;
    sequences.set(key, next > SEQUENCE_MAX ? next - SEQUENCE_MAX - 1 : next);
  }
}

function toMessage(topic: string, partition: number, { key, value, headers }: OutboundRecord): MessageRecord {
  // Null is no key, or a tombstone; the library's types know of neither.
  const message = { topic, partition, key, value } as MessageRecord;
  if (headers !== undefined) {
    message.headers = new Map(Object.entries(headers).map(([name, bytes]) => [Buffer.from(name), bytes]));
  }
  return message;
}

function toError(id: string): Error {
  return new Error(`${id}: ${protocolErrors[id]?.message ?? 'an error that the client does not know'}`);
}
