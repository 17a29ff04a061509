import { Partitioners } from 'kafkajs';
import type { Connection } from '../../src/client/connection.ts';
import type { ScoredResult } from '../../src/contracts/records.ts';
import { identityKey, type RequestIdentity } from '../../src/core/outcome/identity.ts';
import type { InboundRecord } from '../../src/ports/message-bus.ts';
import { eventually } from '../slow/real-pipeline.ts';

/** A result, and the record that it came in. */
export interface LandedResult {
  result: ScoredResult;
  record: InboundRecord;
}

/** Everything on scored-results and on dead-letter topics since the opening, by the request that it is about. */
export interface ResultsByIdentity {
  /** All results of a request, in the order in which they came. */
  of(identity: RequestIdentity): readonly LandedResult[];
  deadLettersOf(identity: RequestIdentity): readonly InboundRecord[];
  /** The first result; waits for it. */
  first(identity: RequestIdentity): Promise<LandedResult>;
  close(): Promise<void>;
}

const ERRORS = '__connect.errors.';

export async function openResultsByIdentity(
  client: Connection,
  ingress: readonly string[],
): Promise<ResultsByIdentity> {
  const results = new Map<string, LandedResult[]>();
  const deadLetters = new Map<string, InboundRecord[]>();
  const add = <T>(map: Map<string, T[]>, key: string, item: T): void => {
    map.set(key, [...(map.get(key) ?? []), item]);
  };
  const codec = client.codecs.for('ScoredResult');
  const onResult = (record: InboundRecord): void => {
    const decoded = codec.decode(record.value);
    if (decoded.status !== 'ok') throw new Error(`a result cannot be read: ${JSON.stringify(decoded)}`);
    add(results, identityKey(decoded.value.identity), { result: decoded.value, record });
  };
  const onDeadLetter = (record: InboundRecord): void => {
    const place = ['topic', 'partition', 'offset'].map((part) => headerText(record, part));
    add(deadLetters, place.join('/'), record);
  };
  const readers = await Promise.all([
    client.bus.read({ topics: [client.topics.fixed('scored-results')], startAt: 'earliest' }, (records) =>
      records.forEach(onResult),
    ),
    client.bus.read(
      { topics: ingress.map((topic) => client.topics.deadLetter(topic)), startAt: 'earliest' },
      (records) => records.forEach(onDeadLetter),
    ),
  ]);
  const of = (identity: RequestIdentity) => results.get(identityKey(identity)) ?? [];
  return {
    of,
    deadLettersOf: (identity) => deadLetters.get(identityKey(identity)) ?? [],
    async first(identity) {
      await eventually(() => of(identity).length > 0, `a result of ${identityKey(identity)}`);
      const [landed] = of(identity);
      if (landed === undefined) throw new Error('unreachable');
      return landed;
    },
    async close() {
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

/** A header of Kafka Connect's, by the last part of its name. */
export function headerText(record: InboundRecord, name: string): string | undefined {
  return record.headers[`${ERRORS}${name}`]?.toString('utf8');
}

/** The partition where a stock client looks for a key: kafkajs's own murmur2. */
export function stockPartition(topic: string, key: string, partitions: number): number {
  const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: 1,
    replicas: [1],
    isr: [1],
  }));
  const message = { key: Buffer.from(key), value: null };
  return Partitioners.DefaultPartitioner()({ topic, partitionMetadata, message });
}
