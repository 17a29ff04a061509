import type { TopicPartition } from '../../ports/message-bus.ts';
import { PartitionTable } from './partition-table.ts';

/**
 * In which order partitions are asked for. A broker fills an answer in the order of the request, up to its limit of bytes: always in the same order,
 * the last ones would be answered only once the backlog of the first is gone. So those go first that brought records the longest ago.
 */
export class FetchOrder {
  readonly #broughtAt = new PartitionTable<number>();
  #brought = 0;

  /** A fetch brought records of the partition. */
  brought({ topic, partition }: TopicPartition): void {
    this.#broughtAt.set(topic, partition, ++this.#brought);
  }

  sorted<P extends TopicPartition>(partitions: readonly P[]): P[] {
    return [...partitions].sort((a, b) => this.#turnOf(a) - this.#turnOf(b));
  }

  #turnOf({ topic, partition }: TopicPartition): number {
    return this.#broughtAt.get(topic, partition) ?? 0;
  }
}
