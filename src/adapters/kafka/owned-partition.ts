import type { TopicPartition } from '../../ports/message-bus.ts';
import { PartitionQueue, type QueueLimits } from './partition-queue.ts';

/**
 * A partition that this member owns. `starting` until its position is known, `live` while it is delivered, `leaving` while what was delivered
 * drains before it goes to another member.
 */
export class OwnedPartition implements TopicPartition {
  readonly topic: string;
  readonly partition: number;
  /** Carried by its records: acknowledgements under another number are ignored. */
  readonly assignment: number;
  state: 'starting' | 'live' | 'leaving' = 'starting';
  queue: PartitionQueue;
  committed = -1;
  paused = true;
  isDeliverySoon = false;
  readonly #limits: QueueLimits;

  constructor({ topic, partition }: TopicPartition, assignment: number, limits: QueueLimits) {
    this.topic = topic;
    this.partition = partition;
    this.assignment = assignment;
    this.#limits = limits;
    this.queue = new PartitionQueue(0, limits);
  }

  start(position: number): void {
    this.queue = new PartitionQueue(position, this.#limits);
    this.state = 'live';
  }
}

export function toTopicPartition({ topic, partition }: TopicPartition): TopicPartition {
  return { topic, partition };
}
