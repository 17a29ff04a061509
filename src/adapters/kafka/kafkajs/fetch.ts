import type { Headers, Unreadable } from '../../../ports/message-bus.ts';
import { type PartitionResponse, readFetchResponse } from '../fetch-response.ts';
import {
  IS_CONTROL,
  IS_TRANSACTIONAL,
  type RecordBatch,
  readBatches,
  timestamps,
  type UnpackBudget,
  unpackBudget,
} from '../record-batch.ts';
import { refusedOffsets } from '../unreadable.ts';

/**
 * Answers to fetches as kafkajs 2.2.4 wants them. Its own reader takes as much memory as a batch unpacks to, whatever that is, and for the headers
 * of a record time that grows with the square of their number: 3 s for a thousand.
 */

/** What kafkajs's consumer takes from a message. */
export interface FetchedMessage {
  offset: string;
  timestamp: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: Headers;
  isControlRecord: boolean;
  batchContext: { producerId: string; inTransaction: boolean };
  unreadable?: Unreadable;
}

/** From version 8 on the broker has not waited, and leaves that to the client. */
const CLIENT_WAITS_SINCE = 8;
const NO_HEADERS: Headers = Object.freeze({});

export async function decodeFetch(payload: Buffer, version: number) {
  const { throttleTimeMs, errorCode, sessionId, topics } = readFetchResponse(payload, version);
  const budget = unpackBudget();
  const responses = [];
  for (const { topic, partitions } of topics) {
    const read = [];
    for (const partition of partitions) {
      const messages = await readMessages(partition, budget);
      if (messages !== undefined) read.push(toPartition(partition, messages));
    }
    responses.push({ topicName: topic, partitions: read });
  }
  const isClientWaiting = version >= CLIENT_WAITS_SINCE;
  return {
    throttleTime: isClientWaiting ? 0 : throttleTimeMs,
    ...(isClientWaiting ? { clientSideThrottleTime: throttleTimeMs } : {}),
    errorCode,
    sessionId,
    responses,
  };
}

function toPartition(response: PartitionResponse, messages: FetchedMessage[]) {
  return {
    partition: response.partition,
    errorCode: response.errorCode,
    highWatermark: String(response.highWatermark),
    lastStableOffset: String(response.lastStableOffset),
    abortedTransactions: response.abortedTransactions.map(({ producerId, firstOffset }) => ({
      producerId: String(producerId),
      firstOffset: String(firstOffset),
    })),
    preferredReadReplica: response.preferredReadReplica,
    messages,
  };
}

/** Undefined where none of its batches could be read now: the partition is left out, and asked for again. */
async function readMessages(
  { records }: PartitionResponse,
  budget: UnpackBudget,
): Promise<FetchedMessage[] | undefined> {
  if (records.length === 0) return [];
  const batches = await readBatches(records, budget);
  if (batches.length === 0) return undefined;
  const messages: FetchedMessage[] = [];
  for (const batch of batches) addMessages(messages, batch);
  return messages;
}

function addMessages(messages: FetchedMessage[], batch: RecordBatch): void {
  const batchContext = {
    producerId: String(batch.producerId),
    inTransaction: (batch.attributes & IS_TRANSACTIONAL) !== 0,
  };
  const isControlRecord = (batch.attributes & IS_CONTROL) !== 0;
  const timestampOf = timestamps(batch);
  const firstOffset = Number(batch.firstOffset);
  for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
    messages.push({
      offset: String(firstOffset + offsetDelta),
      timestamp: String(timestampOf(timestampDelta)),
      key,
      value,
      headers,
      isControlRecord,
      batchContext,
    });
  }
  const empty = {
    timestamp: String(timestampOf(0)),
    key: null,
    value: null,
    headers: NO_HEADERS,
    batchContext,
  };
  const { refused } = batch;
  if (refused !== undefined) {
    for (const offset of refusedOffsets(refused))
      messages.push({ ...empty, offset: String(offset), isControlRecord: false, unreadable: refused });
  } else if (batch.records.at(-1)?.offsetDelta !== batch.lastOffsetDelta) {
    // What compaction left of a batch may lack its end, and the consumer goes on behind that.
    messages.push({ ...empty, offset: String(firstOffset + batch.lastOffsetDelta), isControlRecord: true });
  }
}
