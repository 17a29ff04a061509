import { type MessageRecord, type produceV11, protocolErrors, protocolErrorsCodesById } from '@platformatic/kafka';
import type { OutboundRecord } from '../../../ports/message-bus.ts';
import { type PartitionBatch, type SendOutcome, STORED } from '../client.ts';
import { PartitionTable } from '../partition-table.ts';
import { type Cluster, responseOf } from './cluster.ts';

type ProduceResponse = produceV11.ProduceResponse;

const ACKS_ALL = -1;
const NOT_ROUTED: SendOutcome = { status: 'delayed', error: new Error('the partition has no leader that is known') };
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);
const INVALID = new Set(['INVALID_RECORD', 'INVALID_TIMESTAMP', 'UNSUPPORTED_FOR_MESSAGE_FORMAT']);

/** Produce requests, each to the leader of its partitions. */
export class PlatformaticSender {
  readonly #cluster: Cluster;
  readonly #requestTimeoutMs: number;

  constructor(cluster: Cluster, requestTimeoutMs: number) {
    this.#cluster = cluster;
    this.#requestTimeoutMs = requestTimeoutMs;
  }

  async send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    const byLeader = Map.groupBy(batches, ({ topic, partition }) => this.#cluster.topic(topic)?.leaders[partition] ?? -1);
    const outcomes = new PartitionTable<SendOutcome>();
    const sent = [...byLeader].filter(([leader]) => leader >= 0).map(([leader, own]) => this.#sendTo(leader, own, outcomes));
    const settled = await Promise.allSettled(sent);
    const failed = settled.find((result) => result.status === 'rejected');
    if (failed !== undefined && settled.length === 1) throw failed.reason;
    const lost: SendOutcome = failed === undefined ? NOT_ROUTED : { status: 'delayed', error: failed.reason };
    return batches.map(({ topic, partition }) => outcomes.get(topic, partition) ?? lost);
  }

  async #sendTo(leader: number, batches: readonly PartitionBatch[], outcomes: PartitionTable<SendOutcome>): Promise<void> {
    const messages = batches.flatMap(({ topic, partition, records }) => records.map((record) => toMessage(topic, partition, record)));
    for (const { name, partitionResponses } of (await this.#produce(leader, messages)).responses) {
      for (const { index, errorCode } of partitionResponses) {
        outcomes.set(name, index, errorCode === 0 ? STORED : outcomeOf(errorCode));
      }
    }
  }

  async #produce(leader: number, messages: MessageRecord[]): Promise<ProduceResponse> {
    try {
      return await this.#cluster.request<ProduceResponse>(leader, 'Produce', ACKS_ALL, this.#requestTimeoutMs, messages, {});
    } catch (error) {
      const response = responseOf<ProduceResponse>(error);
      if (response === undefined) throw error;
      return response;
    }
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

function outcomeOf(code: number): SendOutcome {
  const id = protocolErrorsCodesById[code] ?? '';
  const error = new Error(`${id || code}: ${protocolErrors[id]?.message ?? 'unknown error'}`);
  if (TOO_LARGE.has(id)) return { status: 'too-large', error };
  if (INVALID.has(id)) return { status: 'invalid', error };
  return { status: 'delayed', error };
}
