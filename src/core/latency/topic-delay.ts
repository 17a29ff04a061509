/**
 * How long a record lay in its topic, measured without trusting that two clocks agree.
 *
 * The broker stamps a record when it is appended, on its own clock; a stage sees it later on its own monotonic clock. The difference
 * of the two is the time in the topic plus a constant (the clocks' offset and the shortest way there is). The running minimum of
 * that difference is taken for the constant; what exceeds it is charged. So:
 * - a skew of any size, or a jump of the local wall clock, charges nothing (the monotonic clock never jumps);
 * - a jump back of the broker's clock shows as a record stamped before its predecessor on the same partition, and a jump ahead
 *   as a new minimum: either way the constant is learned anew and nobody is charged an hour;
 * - a jump back that is shorter than the pause between two records does not show like that. But then record after record comes alone and
 *   exceeds the constant by the same: no backlog does that, since it comes in a heap once it can be read. Some such records in a row are
 *   believed;
 * - a record that was seen before comes again because its partition was read again, after a pause or a change of owner: its stamp lies before its
 *   predecessor's though no clock went back, and the constant stays;
 * - a backlog is charged in full, as long as the minimum was seen before it built up; of one that was there at the start, each record
 *   is charged what it waited longer than the newest that came with it.
 */

/** The constant may drift: clocks are slewed by up to 500 ppm; this lets the minimum follow and forgets 12 ms a minute at most. */
const DRIFT_PER_MS = 200e-6;
/** Records of one partition are stamped in order; a smaller step back is the broker's own rounding. */
const STEP_BACK_MS = 10;
/** A record comes alone when the one before it was seen so much earlier. */
const ALONE_MS = 20;
/** Records that come alone and exceed the constant by the same (within this, or a tenth) … */
const SAME_EXCESS_MS = 10;
/** … are believed when they are so many in a row. */
const BELIEVED_RECORDS = 4;

/** What is asked of a record: where it lies, and when the broker says that it was appended. */
export interface StampedRecord {
  topic: string;
  partition: number;
  offset: number;
  timestampMs: number;
}

interface PartitionDelay {
  /** The running minimum of (monotonic now − append time). */
  offsetMs: number;
  seenAtMs: number;
  /** The last record so far that had not been seen before. */
  lastOffset: number;
  lastAppendMs: number;
  /** Records in a row that came alone and exceeded the constant by the same, and the least excess of them. */
  alone: number;
  aloneMs: number;
}

export interface TopicDelay {
  /**
   * Told of the first records of a partition before they are charged: of those that come together the newest waited least. Where the
   * partition is known it changes nothing.
   * @param oldest the first of them @param newestAppendMs append time of the last @param nowMs the local monotonic clock
   */
  starts(oldest: StampedRecord, newestAppendMs: number, nowMs: number): void;
  /**
   * Milliseconds that a record waited beyond the shortest wait known for its partition; ≥ 0.
   * @param nowMs the local monotonic clock
   */
  inTopicMs(record: StampedRecord, nowMs: number): number;
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
    starts(oldest, newestAppendMs, nowMs) {
      const partitions = partitionsOf(oldest.topic);
      if (partitions[oldest.partition] !== undefined || newestAppendMs < oldest.timestampMs) return;
      partitions[oldest.partition] = learned(nowMs - newestAppendMs, oldest, nowMs);
    },
    inTopicMs(record, nowMs) {
      const partitions = partitionsOf(record.topic);
      const known = partitions[record.partition];
      if (known !== undefined) return charge(known, record, nowMs);
      partitions[record.partition] = learned(nowMs - record.timestampMs, record, nowMs);
      return 0;
    },
  };
}

function learned(offsetMs: number, { offset, timestampMs }: StampedRecord, seenAtMs: number): PartitionDelay {
  return { offsetMs, lastOffset: offset, lastAppendMs: timestampMs, seenAtMs, alone: 0, aloneMs: 0 };
}

function charge(known: PartitionDelay, record: StampedRecord, nowMs: number): number {
  const differenceMs = nowMs - record.timestampMs;
  const pauseMs = nowMs - known.seenAtMs;
  const isAgain = wasSeen(known, record);
  const wentBack = !isAgain && record.timestampMs < known.lastAppendMs - STEP_BACK_MS;
  known.offsetMs = wentBack ? differenceMs : Math.min(differenceMs, known.offsetMs + pauseMs * DRIFT_PER_MS);
  known.seenAtMs = nowMs;
  if (!isAgain) {
    known.lastOffset = record.offset;
    known.lastAppendMs = record.timestampMs;
    believe(known, differenceMs - known.offsetMs, pauseMs);
  }
  return differenceMs - known.offsetMs;
}

/** An offset of a topic that was made anew can be an old one as well, but what lies there was stamped later. */
function wasSeen(
  { lastOffset, lastAppendMs }: PartitionDelay,
  { offset, timestampMs }: StampedRecord,
): boolean {
  return offset <= lastOffset && timestampMs <= lastAppendMs;
}

function believe(known: PartitionDelay, excessMs: number, pauseMs: number): void {
  countAlone(known, excessMs, pauseMs);
  if (known.alone < BELIEVED_RECORDS) return;
  known.offsetMs += known.aloneMs;
  known.alone = 0;
}

function countAlone(known: PartitionDelay, excessMs: number, pauseMs: number): void {
  if (pauseMs < ALONE_MS || excessMs <= SAME_EXCESS_MS) {
    known.alone = 0;
    return;
  }
  const toleranceMs = Math.max(SAME_EXCESS_MS, excessMs / 10);
  const isSame = known.alone > 0 && Math.abs(excessMs - known.aloneMs) <= toleranceMs;
  known.alone = isSame ? known.alone + 1 : 1;
  known.aloneMs = isSame ? Math.min(known.aloneMs, excessMs) : excessMs;
}
