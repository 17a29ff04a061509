import { type DeadLetter, parseDeadLetter } from '../contracts/dead-letter.ts';
import type { topicSpecs } from '../contracts/topic-specs.ts';
import { MillraceError } from '../core/errors.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import type { InboundRecord, MessageBus } from '../ports/message-bus.ts';

export const DEAD_LETTER_SUFFIX = '.dlq';

/** A record of a dead-letter topic. */
export interface FoundDeadLetter {
  /** The dead-letter topic. */
  topic: string;
  /** Its place there: `partition/offset`. */
  id: string;
  /** undefined where the record does not say what it was. */
  letter: DeadLetter | undefined;
  record: InboundRecord;
}

/**
 * The dead-letter topics that there are, of those planned, or the one of `source` (a source topic, or the dead-letter topic itself).
 * @throws MillraceError INVALID_CONFIG where there is none for `source`
 */
export async function deadLetterTopics(
  bus: MessageBus,
  specs: ReturnType<typeof topicSpecs>,
  source: string | undefined,
): Promise<string[]> {
  const existing = (await bus.admin.listTopics()).filter((name) => name.endsWith(DEAD_LETTER_SUFFIX));
  const planned = new Set(specs.map(({ name }) => name));
  const known = existing.filter((name) => planned.has(name)).sort();
  if (source === undefined) return known;
  const wanted = source.endsWith(DEAD_LETTER_SUFFIX) ? source : `${source}${DEAD_LETTER_SUFFIX}`;
  if (existing.includes(wanted)) return [wanted];
  const sources = known.map((name) => name.slice(0, -DEAD_LETTER_SUFFIX.length));
  throw new MillraceError('INVALID_CONFIG', 'there is no dead-letter topic of this name', {
    value: source,
    allowed: sources.length === 0 ? 'none exists yet: run `millrace topics apply`' : sources.join(', '),
    ...didYouMean(source, sources),
  });
}

/** Hands over what lies in the topics now, in the order of each partition. */
export async function readDeadLetters(
  bus: MessageBus,
  topics: readonly string[],
  take: (found: FoundDeadLetter) => void,
): Promise<void> {
  if (topics.length === 0) return;
  const reader = await bus.read({ topics, startAt: 'earliest' }, (records) => {
    for (const record of records) take(found(record));
  });
  await reader.caughtUp;
  await reader.close();
}

function found(record: InboundRecord): FoundDeadLetter {
  const { topic, partition, offset } = record;
  return { topic, id: `${partition}/${offset}`, letter: parseDeadLetter(record), record };
}
