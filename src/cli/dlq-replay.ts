import { loadSettings } from '../config/load-settings.ts';
import { type DeadLetter, replayedRecord } from '../contracts/dead-letter.ts';
import { MillraceError } from '../core/errors.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import { plannedTopics } from '../wiring/apply-topics.ts';
import type { CliContext } from './context.ts';
import {
  DEAD_LETTER_SUFFIX,
  deadLetterTopics,
  type FoundDeadLetter,
  readDeadLetters,
} from './dead-letters.ts';
import { requireTopics } from './require-topics.ts';
import { waitingFor } from './waiting.ts';

export interface ReplayFlags {
  topic?: string;
  id?: string;
  all: boolean;
  yes: boolean;
  json: boolean;
}

/** Dead letters that were chosen, and those among them that cannot be produced again. */
interface Chosen {
  /** `topic/partition/offset` on the dead-letter topic. */
  places: Set<string>;
  bySource: Map<string, number>;
  hashed: number;
  unknown: number;
}

export async function replayDeadLetters(context: CliContext, flags: ReplayFlags): Promise<void> {
  checkFlags(flags);
  const { settings } = loadSettings(context.environment);
  const bus = await waitingFor(context, 'connecting to Kafka', context.openBus(settings));
  try {
    const specs = plannedTopics(settings);
    await requireTopics(bus, specs, settings.prefix);
    const topics = await deadLetterTopics(bus, specs, flags.topic);
    const chosen = await waitingFor(context, 'reading the dead letters', choose(bus, topics, flags));
    if (flags.id !== undefined && chosen.places.size + chosen.hashed + chosen.unknown === 0)
      throw new MillraceError('INVALID_CONFIG', 'there is no dead letter of this id', {
        value: flags.id,
        advice: 'See `millrace dlq list`',
      });
    const isAsked = !flags.yes && !flags.json && chosen.places.size > 0;
    if (!flags.json) context.stdout.write(`${planLines(chosen).join('\n')}\n`);
    if (isAsked) {
      context.stdout.write('nothing was done: add --yes to do it\n');
      context.exitCode = 2;
      return;
    }
    // Those that fail again come back on the same topic, so only what lay there before is taken.
    await waitingFor(context, 'replaying', produceAgain(bus, topics, chosen.places));
    const { size: replayed } = chosen.places;
    const { hashed, unknown } = chosen;
    context.stdout.write(
      flags.json ? `${JSON.stringify({ replayed, hashed, unknown })}\n` : `replayed ${replayed}\n`,
    );
  } finally {
    await bus.close();
  }
}

function checkFlags({ id, all, topic }: ReplayFlags): void {
  if ((id === undefined) === !all)
    throw new MillraceError('INVALID_CONFIG', 'say which dead letters to replay', {
      allowed: 'either --id <partition/offset> or --all',
    });
  if (id !== undefined && !/^\d+\/\d+$/.test(id))
    throw new MillraceError('INVALID_CONFIG', '--id names no dead letter', {
      value: id,
      allowed: 'partition/offset, as `millrace dlq list` shows it, such as 0/12',
    });
  if (id !== undefined && topic === undefined)
    throw new MillraceError('INVALID_CONFIG', '--id needs --topic: each dead-letter topic counts for itself');
}

async function choose(bus: MessageBus, topics: readonly string[], { id }: ReplayFlags): Promise<Chosen> {
  const chosen: Chosen = { places: new Set(), bySource: new Map(), hashed: 0, unknown: 0 };
  await readDeadLetters(bus, topics, (found) => {
    if (id !== undefined && found.id !== id) return;
    const { letter } = found;
    // Its header alone does not decide where bytes are produced: a letter that names another topic is not millrace's.
    if (letter === undefined || `${letter.topic}${DEAD_LETTER_SUFFIX}` !== found.topic) chosen.unknown += 1;
    else if (letter.payload === 'hash') chosen.hashed += 1;
    else {
      chosen.places.add(placeOf(found));
      chosen.bySource.set(letter.topic, (chosen.bySource.get(letter.topic) ?? 0) + 1);
    }
  });
  return chosen;
}

function placeOf({ topic, id }: FoundDeadLetter): string {
  return `${topic}/${id}`;
}

function planLines({ bySource, hashed, unknown }: Chosen): string[] {
  return [
    ...(bySource.size === 0 ? ['no dead letter to replay'] : []),
    ...[...bySource].map(([topic, many]) => `${many} to replay on ${topic}`),
    ...(hashed > 0 ? [`${hashed} carry only a hash of their bytes, and cannot be replayed`] : []),
    ...(unknown > 0
      ? [`${unknown} do not say what they were, or name another topic, and are left alone`]
      : []),
  ];
}

async function produceAgain(
  bus: MessageBus,
  topics: readonly string[],
  places: ReadonlySet<string>,
): Promise<void> {
  const producing: Promise<void>[] = [];
  const failures: unknown[] = [];
  await readDeadLetters(bus, topics, (found) => {
    if (found.letter === undefined || !places.has(placeOf(found))) return;
    producing.push(produce(bus, found.letter).catch((error: unknown) => void failures.push(error)));
  });
  await Promise.all(producing);
  if (failures.length > 0)
    throw new MillraceError('BUS_UNAVAILABLE', `${failures.length} of ${places.size} could not be replayed`, {
      value: String(failures[0]),
      cause: failures[0],
    });
}

/** On the partition that it came from, while there is one: a partition of a dispatch topic is a worker's slot. */
async function produce(bus: MessageBus, letter: DeadLetter): Promise<void> {
  const partitions = await bus.partitionCount(letter.topic);
  const partition =
    letter.partition < partitions
      ? letter.partition
      : partitionForKey(letter.key ?? Buffer.alloc(0), partitions);
  const record = replayedRecord(letter, partition);
  if (record !== undefined) await bus.produce(record);
}
