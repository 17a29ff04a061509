import { MillraceError } from '../../core/errors.ts';
import type { OutboundRecord, TopicConfig, TopicSpec, Watermarks } from '../../ports/message-bus.ts';
import { PartitionLog, recordBytes } from './partition-log.ts';

const DEFAULT_MESSAGE_BYTES_MAX = 1_048_588;
const DEFAULT_RETENTION_MS = 7 * 24 * 3_600_000;
const DEFAULT_TOMBSTONE_RETENTION_MS = 24 * 3_600_000;
/** What is left of the limit after records were dropped for it, so that not every append has to drop some. */
const TRIMMED_SHARE = 7 / 8;

/** What of a topic's configuration the memory broker obeys; Kafka's names and defaults. */
interface TopicRules {
  compacted: boolean;
  /** Infinity keeps records for ever. */
  retentionMs: number;
  messageBytesMax: number;
  tombstoneRetentionMs: number;
}

/** A topic in memory. `bytesMax` bounds what it keeps in all, whatever its retention says: the oldest records go first. */
export class Topic {
  readonly name: string;
  readonly partitions: PartitionLog[] = [];
  readonly #bytesMax: number;
  #config: TopicConfig;
  #rules: TopicRules;

  constructor(spec: TopicSpec, bytesMax: number) {
    this.name = spec.name;
    this.#config = spec.config;
    this.#rules = parseRules(spec.config);
    this.#bytesMax = bytesMax;
    this.grow(spec.partitions);
  }

  get config(): TopicConfig {
    return this.#config;
  }

  configure(changes: TopicConfig): void {
    const config = { ...this.#config, ...changes };
    this.#rules = parseRules(config);
    this.#config = config;
  }

  grow(partitions: number): void {
    if (!Number.isInteger(partitions) || partitions < 1) {
      throw new MillraceError('INVALID_CONFIG', `${this.name} cannot have so many partitions`, {
        value: partitions,
        allowed: 'an integer from 1 up',
      });
    }
    while (this.partitions.length < partitions) this.partitions.push(new PartitionLog());
  }

  /** @returns the record's offset. @throws MillraceError TOO_LARGE, POISON for what this topic never takes, BUS_UNAVAILABLE where there is no such partition. */
  append(record: OutboundRecord, wallMs: number, nowMs: number): number {
    const log = this.log(record.partition);
    const bytes = recordBytes(record);
    if (bytes > this.#rules.messageBytesMax) {
      throw new MillraceError('TOO_LARGE', `The record is too large for ${this.name}`, {
        value: `${bytes} bytes`,
        allowed: `at most ${this.#rules.messageBytesMax} bytes, by max.message.bytes`,
      });
    }
    if (this.#rules.compacted && record.key === null) {
      throw new MillraceError('POISON', `${this.name} is compacted: a record needs a key`, {
        value: null,
      });
    }
    const offset = log.append(record, bytes, Math.floor(wallMs), nowMs);
    this.#expire(log, nowMs);
    if (this.#retainedBytes() > this.#bytesMax) this.#trim(nowMs);
    return offset;
  }

  /** @throws MillraceError BUS_UNAVAILABLE where there is no such partition. */
  log(partition: number): PartitionLog {
    const log = this.partitions[partition];
    if (log !== undefined) return log;
    throw new MillraceError('BUS_UNAVAILABLE', `${this.name} has no such partition`, {
      value: partition,
      allowed: `0 to ${this.partitions.length - 1}`,
    });
  }

  watermarks(): Watermarks[] {
    return this.partitions.map((log, partition) => ({ partition, low: log.low, high: log.high }));
  }

  /** Takes away what is older than the retention. */
  expire(nowMs: number): void {
    for (const log of this.partitions) this.#expire(log, nowMs);
  }

  compact(nowMs: number): void {
    for (const log of this.partitions) log.compact(nowMs - this.#rules.tombstoneRetentionMs);
  }

  #expire(log: PartitionLog, nowMs: number): void {
    const expiredUntilMs = nowMs - this.#rules.retentionMs;
    log.expire((record) => record.storedAtMs < expiredUntilMs);
  }

  #trim(nowMs: number): void {
    if (this.#rules.compacted) this.compact(nowMs);
    const target = this.#bytesMax * TRIMMED_SHARE;
    while (this.#retainedBytes() > target) {
      let oldestLog: PartitionLog | undefined;
      let oldestMs = Infinity;
      for (const log of this.partitions) {
        const storedAtMs = log.oldest()?.storedAtMs ?? Infinity;
        if (storedAtMs < oldestMs) {
          oldestMs = storedAtMs;
          oldestLog = log;
        }
      }
      const oldest = oldestLog?.oldest();
      if (oldest === undefined) return;
      oldestLog?.expire((record) => record === oldest);
    }
  }

  #retainedBytes(): number {
    let bytes = 0;
    for (const log of this.partitions) bytes += log.retainedBytes;
    return bytes;
  }
}

function parseRules(config: Readonly<Record<string, string>>): TopicRules {
  const policies = (config['cleanup.policy'] ?? 'delete').split(',').map((policy) => policy.trim());
  const compacted = policies.includes('compact');
  return {
    compacted,
    retentionMs: policies.includes('delete') ? limit(config, 'retention.ms', DEFAULT_RETENTION_MS) : Infinity,
    messageBytesMax: limit(config, 'max.message.bytes', DEFAULT_MESSAGE_BYTES_MAX),
    tombstoneRetentionMs: limit(config, 'delete.retention.ms', DEFAULT_TOMBSTONE_RETENTION_MS),
  };
}

/** A limit of the topic's configuration; -1 stands for none. */
function limit(config: Readonly<Record<string, string>>, name: string, absent: number): number {
  const text = config[name];
  if (text === undefined) return absent;
  const value = Number(text);
  if (!Number.isInteger(value) || value < -1) {
    throw new MillraceError('INVALID_CONFIG', `${name} is no limit`, {
      value: text,
      allowed: 'an integer from 0 up, or -1 for none',
    });
  }
  return value === -1 ? Infinity : value;
}
