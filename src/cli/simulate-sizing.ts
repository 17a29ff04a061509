import { MillraceError } from '../core/errors.ts';
import type { KafkaAssumptions, KafkaPlan } from '../simulation/report/kafka-plan.ts';
import { sizingSummary, sizingTable } from '../simulation/report/sizing-table.ts';
import { tableLines } from './table.ts';

interface Assumption {
  readonly standard: number;
  readonly field: keyof KafkaAssumptions;
  /** From what is written to what is planned with. */
  readonly unit: number;
  readonly allowed: string;
  isAllowed(value: number): boolean;
}

const isAbove0 = (value: number): boolean => value > 0;
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 1;
const MEGABYTES = { unit: 1e6, allowed: 'MB/s above 0', isAllowed: isAbove0 };
const COUNT = { unit: 1, allowed: 'a whole number from 1', isAllowed: isCount };

/** By name, as docs/simulate.md has them with their sources. */
const ASSUMPTIONS: Readonly<Record<string, Assumption>> = {
  replication: { standard: 3, field: 'replication', ...COUNT },
  partition: { standard: 10, field: 'partitionBytesPerSecond', ...MEGABYTES },
  written: { standard: 45, field: 'brokerWrittenBytesPerSecond', ...MEGABYTES },
  sent: { standard: 60, field: 'brokerSentBytesPerSecond', ...MEGABYTES },
  partitions: { standard: 1_000, field: 'brokerPartitions', ...COUNT },
  headroom: {
    ...{ standard: 0.4, field: 'headroom', unit: 1, allowed: 'a share, 0 … below 1' },
    isAllowed: (value) => value >= 0 && value < 1,
  },
};

/** @throws MillraceError INVALID_CONFIG for what is no assumption, or none of its values */
export function readAssumptions(texts: readonly string[]): KafkaAssumptions {
  const values = new Map(
    Object.values(ASSUMPTIONS).map(({ field, standard, unit }) => [field, standard * unit]),
  );
  for (const text of texts) {
    const [name = '', written = ''] = text.split('=');
    const assumption = Object.hasOwn(ASSUMPTIONS, name) ? ASSUMPTIONS[name] : undefined;
    if (assumption === undefined)
      throw notValid(text, `${Object.keys(ASSUMPTIONS).join(', ')}, as in replication=2`);
    const value = /^\d+(\.\d+)?$/.test(written) ? Number(written) : Number.NaN;
    if (!assumption.isAllowed(value)) throw notValid(text, `${name}= with ${assumption.allowed}`);
    values.set(assumption.field, value * assumption.unit);
  }
  const of = (field: keyof KafkaAssumptions): number => values.get(field) ?? Number.NaN;
  return {
    replication: of('replication'),
    partitionBytesPerSecond: of('partitionBytesPerSecond'),
    brokerWrittenBytesPerSecond: of('brokerWrittenBytesPerSecond'),
    brokerSentBytesPerSecond: of('brokerSentBytesPerSecond'),
    brokerPartitions: of('brokerPartitions'),
    headroom: of('headroom'),
  };
}

/** For people. */
export function sizingLines(plan: KafkaPlan): string[] {
  const { headers, rows } = sizingTable(plan);
  return [
    ...tableLines(
      [...headers],
      rows.map((row) => [...row]),
    ),
    ...sizingSummary(plan),
  ];
}

function notValid(value: string, allowed: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', '--assume is not valid', { value, allowed });
}
