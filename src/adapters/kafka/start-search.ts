import type { StartAt, TopicPartition } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { backoffMs } from './backoff.ts';
import type { KafkaClient } from './client.ts';
import { byTopic } from './partition-table.ts';
import { type OutOfRangePolicy, type StartPosition, startPosition } from './start-position.ts';

const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 2_000;

export interface StartSearch<P extends TopicPartition> {
  client: KafkaClient;
  /** Where commits are looked up; without it every partition starts at `startAt`. */
  group?: string;
  startAt: StartAt;
  outOfRange: OutOfRangePolicy;
  partitions: readonly P[];
  /** Goes on from here instead of from what is committed. */
  position?: number;
  /** Which of them are still wanted, when it has to be tried again. */
  stillWanted(partitions: readonly P[]): readonly P[];
  onError(error: unknown): void;
  /** The log does not have the offset that reading should have gone on from. */
  onOutOfRange(error: RangeError): void;
  logger: Logger;
}

export interface Start<P extends TopicPartition> {
  partition: P;
  start: StartPosition;
}

/**
 * Finds where partitions start, from what is committed and what the log still has; tries until it is known or nobody wants it.
 * Left to the client this would be a silent jump where the two do not fit together.
 */
export async function findStarts<P extends TopicPartition>(
  search: StartSearch<P>,
): Promise<readonly Start<P>[]> {
  for (let attempt = 0; ; attempt++) {
    const partitions = search.stillWanted(search.partitions);
    if (partitions.length === 0) return [];
    try {
      const found = await Promise.all(
        [...byTopic(partitions)].map(([topic, wanted]) => findStartsOfTopic(search, topic, wanted)),
      );
      return found.flat();
    } catch (error) {
      search.onError(error);
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, RETRY_FIRST_MS, RETRY_MOST_MS)));
    }
  }
}

async function findStartsOfTopic<P extends TopicPartition>(
  search: StartSearch<P>,
  topic: string,
  partitions: readonly P[],
): Promise<Start<P>[]> {
  const { client, group, position, startAt, outOfRange, logger } = search;
  // In this order: an offset committed in between is then at most the end that we know.
  const committed = group === undefined ? undefined : await client.committed(group, topic);
  const watermarks = new Map((await client.watermarks(topic)).map((each) => [each.partition, each]));
  return partitions.flatMap((partition) => {
    const bounds = watermarks.get(partition.partition);
    if (bounds === undefined) throw new Error(`${topic}/${partition.partition} has no watermarks yet`);
    const wanted = position ?? committed?.get(partition.partition) ?? -1;
    const start = startPosition(wanted, bounds, startAt, outOfRange);
    if (start.reason === 'out of range') {
      const { low, high } = bounds;
      logger.warn(
        { topic, partition: partition.partition, wanted, low, high, start: start.offset },
        'the offset to start from is not in the log: records were deleted before they were read, or the topic is a new one',
      );
      search.onOutOfRange(
        new RangeError(
          `offset ${wanted} of ${topic}/${partition.partition} is not in the log (${low} to ${high}); reading goes on at ${start.offset}`,
        ),
      );
    }
    return { partition, start };
  });
}
