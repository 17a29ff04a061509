import type { RecordsBatch } from '@platformatic/kafka';
import { afterEach, expect, it } from 'vitest';
import type { Cluster } from '../../../../src/adapters/kafka/platformatic/cluster.ts';
import { Fetcher } from '../../../../src/adapters/kafka/platformatic/fetcher.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { batchOf } from './record-batches.ts';

const TOPICS = ['a', 'b'];
const PARTITIONS = 12;
/** Of how many partitions the broker puts records into one answer: what fits into its limit of bytes. */
const ANSWERED_MAX = 8;

interface Asked {
  topicId: string;
  partitions: { partition: number; fetchOffset: bigint }[];
}

/** A broker that leads everything, with more in each partition than it is ever asked for. */
class EndlessCluster {
  readonly fetched = new Map<string, number>();
  fetches = 0;
  topic = (name: string) => ({ id: name, leaders: new Array<number>(PARTITIONS).fill(1) });
  describe = async (): Promise<void> => undefined;

  request = async (...args: unknown[]) => {
    const topics = args[8] as Asked[];
    this.fetches += 1;
    let room = ANSWERED_MAX;
    const responses = topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map(({ partition, fetchOffset }) => {
        const records: RecordsBatch[] = room-- > 0 ? [batchOf(Number(fetchOffset), 1)] : [];
        return { partitionIndex: partition, errorCode: 0, records, abortedTransactions: [] };
      }),
    }));
    return { errorCode: 0, responses };
  };
}

let fetcher: Fetcher | undefined;
afterEach(() => fetcher?.close());

it('a broker that cannot answer for all partitions at once serves them in turn', async () => {
  const cluster = new EndlessCluster();
  fetcher = new Fetcher({
    cluster: cluster as unknown as Cluster,
    topics: TOPICS,
    listener: {
      admit: () => 1,
      positionOf: () => undefined,
      onOutOfRange: () => undefined,
      onFetched: ({ topic, partition }) => {
        const key = `${topic}/${partition}`;
        cluster.fetched.set(key, (cluster.fetched.get(key) ?? 0) + 1);
      },
    },
    onDescribed: () => undefined,
    logger: silentTelemetry().logger,
  });
  const all = TOPICS.flatMap((topic) =>
    Array.from({ length: PARTITIONS }, (_, partition) => ({ topic, partition })),
  );
  fetcher.assign(all);
  for (const each of all) {
    fetcher.seek(each, 0);
    fetcher.resume(each);
  }
  while (cluster.fetches < 60) await new Promise((resolve) => setImmediate(resolve));
  await fetcher.close();
  const counts = [...cluster.fetched.values()];
  expect(counts).toHaveLength(all.length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(15);
});
