import type { TopicPartition } from '../../ports/message-bus.ts';
import { PartitionTable } from './partition-table.ts';

/** What one answer of a broker holds at most, and what it holds of one partition. A larger batch comes alone, as the first of an answer. */
export const FETCH_BYTES_MAX = 8 * 2 ** 20;
export const PARTITION_BYTES_MAX = 2 ** 20;
/** So many partitions find room in one answer, however long their backlogs: those that are asked for first. */
export const TURNS_PER_FETCH = FETCH_BYTES_MAX / PARTITION_BYTES_MAX;

/**
 * In which order a broker is asked for its partitions. It fills its answer in that order until there is no more room: whatever is asked for last
 * every time, or by chance, waits. So those go first from which records were taken the longest ago.
 *
 * A partition with a backlog then waits for the turns of those ahead of it only, each of which has one turn before it at most: of n partitions of one
 * broker it is served by the ⌈n / TURNS_PER_FETCH⌉th fetch that asks for it; by the nth where there are batches that come alone. A partition that is
 * not asked for (paused), or whose records were dropped (paused or sought meanwhile), keeps its turn.
 */
export class FetchOrder {
  readonly #servedAt = new PartitionTable<number>();
  #served = 0;

  /** Records of the partition were taken out of an answer. */
  served({ topic, partition }: TopicPartition): void {
    this.#servedAt.set(topic, partition, ++this.#served);
  }

  /** Those that were never served go first, as they come. */
  sorted<P extends TopicPartition>(partitions: readonly P[]): P[] {
    return partitions
      .map((partition) => ({ partition, at: this.#servedAt.get(partition.topic, partition.partition) ?? 0 }))
      .sort((a, b) => a.at - b.at)
      .map(({ partition }) => partition);
  }
}

export interface TopicRun<P> {
  readonly topic: string;
  readonly partitions: P[];
}

/** Partitions as a request names them, in their order: a topic stands in it once per run of its partitions. */
export function topicRuns<P extends TopicPartition>(partitions: readonly P[]): TopicRun<P>[] {
  const runs: TopicRun<P>[] = [];
  for (const partition of partitions) {
    const last = runs.at(-1);
    if (last?.topic === partition.topic) last.partitions.push(partition);
    else runs.push({ topic: partition.topic, partitions: [partition] });
  }
  return runs;
}
