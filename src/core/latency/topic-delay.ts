/**
 * How long a record lay in its topic, measured without trusting that two clocks agree.
 *
 * The broker stamps a record when it is appended, on its own clock; a stage sees it later on its own monotonic clock. The difference
 * of the two is the time in the topic plus a constant (the clocks' offset and the shortest way there is). The running minimum of
 * that difference is taken for the constant; what exceeds it is charged. So:
 * - a skew of any size, or a jump of the local wall clock, charges nothing (the monotonic clock never jumps);
 * - a jump back of the broker's clock shows as a record stamped before its predecessor on the same partition, and a jump ahead
 *   as a new minimum: either way the constant is learned anew and nobody is charged an hour;
 * - a backlog is charged in full, as long as the minimum was seen before it built up; of one that was there at the start, each record
 *   is charged what it waited longer than the newest that came with it.
 */

/** The constant may drift: clocks are slewed by up to 500 ppm; this lets the minimum follow and forgets 12 ms a minute at most. */
const DRIFT_PER_MS = 200e-6;
/** Records of one partition are stamped in order; a smaller step back is the broker's own rounding. */
const STEP_BACK_MS = 50;

interface PartitionDelay {
  /** The running minimum of (monotonic now − append time). */
  offsetMs: number;
  seenAtMs: number;
  lastAppendMs: number;
}

export interface TopicDelay {
  /**
   * Told of the first records of a partition before they are charged: of those that come together the newest waited least. Where the
   * partition is known it changes nothing.
   * @param oldest the first of them @param newestAppendMs append time of the last @param nowMs the local monotonic clock
   */
  starts(
    oldest: { topic: string; partition: number; timestampMs: number },
    newestAppendMs: number,
    nowMs: number,
  ): void;
  /**
   * Milliseconds that a record waited beyond the shortest wait known for its partition; ≥ 0.
   * @param appendMs the broker's append time @param nowMs the local monotonic clock
   */
  inTopicMs(topic: string, partition: number, appendMs: number, nowMs: number): number;
}

export function createTopicDelay(): TopicDelay {
  const topics = new Map<string, (PartitionDelay | undefined)[]>();
  const partitionsOf = (topic: string): (PartitionDelay | undefined)[] => {
    let partitions = topics.get(topic);
    if (partitions === undefined) {
      partitions = [];
      topics.set(topic, partitions);
    }
    return partitions;
  };
  return {
    starts({ topic, partition, timestampMs }, newestAppendMs, nowMs) {
      const partitions = partitionsOf(topic);
      if (partitions[partition] !== undefined || newestAppendMs < timestampMs) return;
      partitions[partition] = {
        offsetMs: nowMs - newestAppendMs,
        seenAtMs: nowMs,
        lastAppendMs: timestampMs,
      };
    },
    inTopicMs(topic, partition, appendMs, nowMs) {
      const partitions = partitionsOf(topic);
      const known = partitions[partition];
      if (known === undefined) {
        partitions[partition] = { offsetMs: nowMs - appendMs, seenAtMs: nowMs, lastAppendMs: appendMs };
        return 0;
      }
      return charge(known, appendMs, nowMs);
    },
  };
}

function charge(known: PartitionDelay, appendMs: number, nowMs: number): number {
  const differenceMs = nowMs - appendMs;
  if (appendMs < known.lastAppendMs - STEP_BACK_MS) {
    known.offsetMs = differenceMs;
  } else {
    const drifted = known.offsetMs + (nowMs - known.seenAtMs) * DRIFT_PER_MS;
    known.offsetMs = differenceMs < drifted ? differenceMs : drifted;
  }
  known.seenAtMs = nowMs;
  known.lastAppendMs = appendMs;
  return differenceMs - known.offsetMs;
}
