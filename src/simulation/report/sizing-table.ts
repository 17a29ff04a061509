import type { KafkaPlan } from './kafka-plan.ts';
import type { TextTable } from './shadow-tables.ts';

/** What each topic carries and needs, for people. */
export function sizingTable({ topics }: KafkaPlan): TextTable {
  return {
    headers: ['topic', 'records/s', 'MB/s in', 'MB/s out', 'with copies, written', 'sent', 'partitions'],
    rows: topics.map((topic) => [
      topic.topic,
      figure(topic.recordsPerSecond),
      megabytes(topic.inBytesPerSecond),
      megabytes(topic.outBytesPerSecond),
      megabytes(topic.writtenBytesPerSecond),
      megabytes(topic.sentBytesPerSecond),
      String(topic.partitions),
    ]),
  };
}

/** The cluster, and by which assumptions. */
export function sizingSummary(plan: KafkaPlan): string[] {
  const { replication, headroom, ...each } = plan.assumptions;
  return [
    `${plan.scale} times this load, in its busiest second, needs ${plan.brokers} brokers (for what is ${REASONS[plan.brokersFor]}): ${megabytes(plan.writtenBytesPerSecond)} MB/s written, ${megabytes(plan.sentBytesPerSecond)} MB/s sent, ${plan.partitions} partitions; Redis ${figure(plan.redisPerSecond)} operations/s`,
    `assumed: ${replication} copies; a partition takes ${megabytes(each.partitionBytesPerSecond)} MB/s; a broker writes ${megabytes(each.brokerWrittenBytesPerSecond)} MB/s, sends ${megabytes(each.brokerSentBytesPerSecond)} MB/s, holds ${each.brokerPartitions} partitions; ${figure(headroom * 100)} % of all that stays free`,
  ];
}

const REASONS: Readonly<Record<KafkaPlan['brokersFor'], string>> = {
  copies: 'kept in copies',
  written: 'written',
  sent: 'sent',
  partitions: 'held in partitions',
};

function megabytes(bytes: number): string {
  return figure(bytes / 1e6);
}

function figure(value: number): string {
  return String(Number(value.toPrecision(3)));
}
