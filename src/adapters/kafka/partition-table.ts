import type { TopicPartition } from '../../ports/message-bus.ts';

/** A map by topic and partition that costs no string per look-up. */
export class PartitionTable<T> {
  readonly #topics = new Map<string, Map<number, T>>();

  get(topic: string, partition: number): T | undefined {
    return this.#topics.get(topic)?.get(partition);
  }

  set(topic: string, partition: number, value: T): void {
    const partitions = this.#topics.get(topic);
    if (partitions === undefined) this.#topics.set(topic, new Map([[partition, value]]));
    else partitions.set(partition, value);
  }

  delete(topic: string, partition: number): void {
    this.#topics.get(topic)?.delete(partition);
  }

  clear(): void {
    this.#topics.clear();
  }

  /** All values, as they are now: the table may change while they are walked. */
  values(): T[] {
    return [...this.#topics.values()].flatMap((partitions) => [...partitions.values()]);
  }
}

/** Partitions grouped by their topic. */
export function byTopic<T extends TopicPartition>(partitions: Iterable<T>): Map<string, T[]> {
  return Map.groupBy(partitions, ({ topic }) => topic);
}
