import { schemaOf } from '../contracts/headers.ts';
import type { Records } from '../contracts/records.ts';
import type { RecordName, TopicKey } from '../contracts/topics.ts';
import { MillraceError } from '../core/errors.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';
import type { StageDeps } from './stage.ts';

export interface FollowOptions {
  /** All of them unless given. */
  partitions?: readonly number[];
  /** Called with the key of a record that says good-bye: one without a value. */
  gone?(key: string): void;
}

/**
 * Reads a topic of side information from now on, without a group: heartbeats, acknowledgements, windows of metrics. What cannot be read is passed
 * over, and so is what `take` or `gone` throws for: those that came with it are sound. A schema that is not known yet is looked up, and the next record in it will be read.
 */
export function follow<N extends RecordName>(
  { bus, codecs, topics, telemetry }: Pick<StageDeps, 'bus' | 'codecs' | 'topics' | 'telemetry'>,
  topic: TopicKey,
  record: N,
  take: (value: Records[N]) => void,
  { partitions, gone = () => undefined }: FollowOptions = {},
): Promise<Reader> {
  const codec = codecs.for(record);
  const one = ({ key, value, headers }: InboundRecord): void => {
    if (value === null) {
      gone(key?.toString('utf8') ?? '');
      return;
    }
    const decoded = codec.decode(value, schemaOf(headers));
    if (decoded.status === 'ok') take(decoded.value);
    else if (decoded.status === 'schema-unknown') {
      codecs.learn(decoded).catch((error: unknown) => {
        telemetry.logger.warn({ topic, error: String(error) }, 'schema look-up failed');
      });
    }
  };
  const oneOf = (record: InboundRecord): void => {
    try {
      one(record);
    } catch (error) {
      if (error instanceof MillraceError)
        telemetry.logger.warn({ topic, error: error.message }, 'a record is passed over');
      else telemetry.logger.error({ topic, error }, 'a record is passed over: its reader failed');
    }
  };
  const all = { topics: [topics.fixed(topic)], startAt: 'latest' } as const;
  return bus.read(partitions === undefined ? all : { ...all, partitions }, (records) =>
    records.forEach(oneOf),
  );
}
