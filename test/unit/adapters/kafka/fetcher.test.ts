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

const all = TOPICS.flatMap((topic) =>
  Array.from({ length: PARTITIONS }, (_, partition) => ({ topic, partition })),
);

/** Fetches everything until there were so many requests; how often each partition brought records, whoever looks on. */
async function fetchFrom(cluster: EndlessCluster, fetches: number, onFetched: () => void): Promise<number[]> {
  const started = new Fetcher({
    cluster: cluster as unknown as Cluster,
    topics: TOPICS,
    listener: {
      admit: () => 1,
      positionOf: () => undefined,
      onOutOfRange: () => undefined,
      onFetched: ({ topic, partition }) => {
        const key = `${topic}/${partition}`;
        cluster.fetched.set(key, (cluster.fetched.get(key) ?? 0) + 1);
        onFetched();
      },
    },
    onDescribed: () => undefined,
    logger: silentTelemetry().logger,
  });
  fetcher = started;
  started.assign(all);
  for (const each of all) {
    started.seek(each, 0);
    started.resume(each);
  }
  while (cluster.fetches < fetches) await new Promise((resolve) => setImmediate(resolve));
  await started.close();
  return all.map(({ topic, partition }) => cluster.fetched.get(`${topic}/${partition}`) ?? 0);
}

it('a broker that cannot answer for all partitions at once serves them in turn', async () => {
  const counts = await fetchFrom(new EndlessCluster(), 60, () => undefined);
  expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(59 * ANSWERED_MAX);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
});

it('whoever pauses at once, so that the rest of each answer is dropped, gets all partitions in turn too', async () => {
  const counts = await fetchFrom(new EndlessCluster(), 4 * all.length, () => {
    for (const each of all) fetcher?.pause(each);
    setImmediate(() => {
      for (const each of all) fetcher?.resume(each);
    });
  });
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(3);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
});
