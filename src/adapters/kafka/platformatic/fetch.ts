import type { API, Connection, Reader } from '@platformatic/kafka';
import { type AbortedTransaction, type FetchResponse, readFetchResponse } from '../fetch-response.ts';
import { type RecordBatch, readBatches, unpackBudget } from '../record-batch.ts';

/** The library's form of an answer to a fetch, as far as it is of use, with the batches as they are read here. */
export interface FetchAnswer {
  errorCode: number;
  responses: readonly { topicId: string; partitions: readonly FetchedPartition[] }[];
}

export interface FetchedPartition {
  partitionIndex: number;
  errorCode: number;
  abortedTransactions: readonly AbortedTransaction[] | null;
  records?: readonly RecordBatch[] | null;
}

/**
 * A fetch in the version that the library has agreed on with the broker. Only the answer is read here: the library unpacks all that a batch holds, at
 * once and whatever it takes.
 */
export async function fetchFrom(
  connection: Connection,
  request: API<unknown[], unknown>,
  args: readonly unknown[],
): Promise<FetchAnswer> {
  const response = await new Promise<FetchResponse>((resolve, reject) => {
    request(withReader(connection), ...args, (failure: Error | null, answer?: unknown) => {
      if (failure === null) resolve(answer as FetchResponse);
      else reject(failure);
    });
  });
  const budget = unpackBudget();
  const responses = [];
  for (const { topic, partitions } of response.topics) {
    const read: FetchedPartition[] = [];
    for (const { partition, errorCode, abortedTransactions, records } of partitions) {
      const batches = await readBatches(records, budget);
      read.push({ partitionIndex: partition, errorCode, abortedTransactions, records: batches });
    }
    responses.push({ topicId: topic, partitions: read });
  }
  return { errorCode: response.errorCode, responses };
}

/** The connection for one request, whose answer is read here. */
function withReader(connection: Connection): Connection {
  const send: Connection['send'] = (apiKey, apiVersion, createPayload, _parser, ...rest) => {
    const parser = (_correlationId: number, _apiKey: number, version: number, { buffer, position }: Reader) =>
      readFetchResponse(buffer.subarray(position).buffer, version);
    return connection.send(apiKey, apiVersion, createPayload, parser as never, ...rest);
  };
  return { send } as Connection;
}
