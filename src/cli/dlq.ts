import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { plannedTopics } from '../wiring/apply-topics.ts';
import type { CliContext } from './context.ts';
import {
  DEAD_LETTER_SUFFIX,
  deadLetterTopics,
  type FoundDeadLetter,
  readDeadLetters,
} from './dead-letters.ts';
import { type ReplayFlags, replayDeadLetters } from './dlq-replay.ts';
import { count } from './flags.ts';
import { requireTopics } from './require-topics.ts';
import { tableLines } from './table.ts';
import { waitingFor } from './waiting.ts';

interface ListFlags {
  topic?: string;
  max: number;
  json: boolean;
}

/** `millrace dlq list|replay`: records that could not be read or worked on. */
export function dlqCommand(context: CliContext): Command {
  const dlq = new Command('dlq').description('Dead letters: records that could not be read or worked on');
  dlq
    .command('list')
    .description('List dead letters with their reason, the stage that gave up, and where they came from')
    .option('--topic <topic>', 'only those of this source topic, such as millrace.ingress.v1')
    .option('--max <n>', 'at most so many, the newest', count, 100)
    .option('--json', 'print one JSON object per line', false)
    .addHelpText(
      'after',
      `
Needs a running installation (MILLRACE_KAFKA_BROKERS). What each reason means: docs/errors.md. The id is partition/offset on the
dead-letter topic, which is the source topic's name and .dlq; millrace dlq replay takes it.

Examples:
  millrace dlq list
  millrace dlq list --topic millrace.ingress.v1 --max 20 --json`,
    )
    .action((flags: ListFlags) => list(context, flags));
  dlq
    .command('replay')
    .description('Produce dead letters again on the topic that they came from: the original bytes and key')
    .option('--topic <topic>', 'only those of this source topic')
    .option('--id <partition/offset>', 'this one; needs --topic')
    .option('--all', 'every one', false)
    .option('--yes', 'do not ask', false)
    .option('--json', 'print one JSON object, and do not ask', false)
    .addHelpText(
      'after',
      `
Replay once what made them fail is put right: a schema registered, a limit raised, a worker mended. On ingress each becomes a new
request and gets a result of its own. On features and dispatch topics it keeps its identity, so its result comes second to that
of the dead letter, and readers that keep to the first per request (the SDK does) never see it. A dead letter stays where it is
until it expires; one that carries only a hash (deadLetterPayload) cannot be replayed.

Examples:
  millrace dlq replay --topic millrace.ingress.v1 --id 0/12
  millrace dlq replay --topic millrace.ingress.v1 --all --yes`,
    )
    .action((flags: ReplayFlags) => replayDeadLetters(context, flags));
  return dlq;
}

async function list(context: CliContext, flags: ListFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  const bus = await waitingFor(context, 'connecting to Kafka', context.openBus(settings));
  try {
    const specs = plannedTopics(settings);
    await requireTopics(bus, specs, settings.prefix);
    const topics = await deadLetterTopics(bus, specs, flags.topic);
    const newest = new Newest(flags.max);
    await waitingFor(
      context,
      'reading the dead letters',
      readDeadLetters(bus, topics, (found) => newest.add(line(found))),
    );
    if (flags.json) for (const shown of newest.lines()) context.stdout.write(`${JSON.stringify(shown)}\n`);
    else printTable(context, newest, topics);
  } finally {
    await bus.close();
  }
}

type Line = ReturnType<typeof line>;

/** What is shown of a dead letter; of its bytes, only how many. */
function line({ topic, id, letter, record }: FoundDeadLetter) {
  return {
    at: new Date(record.timestampMs).toISOString(),
    topic: letter?.topic ?? topic.slice(0, -DEAD_LETTER_SUFFIX.length),
    id,
    reason: letter?.code ?? letter?.exceptionClass ?? 'UNKNOWN',
    stage: letter?.stage ?? '',
    source: letter === undefined ? '' : `${letter.partition}/${letter.offset}`,
    key: record.key?.toString('utf8') ?? null,
    bytes: record.value?.length ?? 0,
    payload: letter?.payload ?? 'full',
    message: letter?.message ?? 'the record does not say what it was: something else wrote it here',
  };
}

/** The lines with the latest times, however many come. */
class Newest {
  readonly #max: number;
  #lines: Line[] = [];
  total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(shown: Line): void {
    this.total += 1;
    this.#lines.push(shown);
    if (this.#lines.length >= 2 * this.#max) this.#lines = this.lines();
  }

  /** Oldest first. */
  lines(): Line[] {
    return this.#lines.toSorted((a, b) => a.at.localeCompare(b.at)).slice(-this.#max);
  }
}

function printTable(context: CliContext, newest: Newest, topics: readonly string[]): void {
  const lines = newest.lines();
  if (lines.length === 0) {
    context.stdout.write(`no dead letters in ${topics.length} topics\n`);
    return;
  }
  const rows = lines.map((shown) => [
    shown.at,
    shown.topic,
    shown.id,
    shown.reason,
    shown.stage,
    shown.source,
    printable(shown.key),
    String(shown.bytes),
    shown.message,
  ]);
  const headers = ['at', 'topic', 'id', 'reason', 'stage', 'source', 'key', 'bytes', 'message'];
  const hidden = newest.total - lines.length;
  const table = tableLines(headers, rows);
  context.stdout.write(`${[...table, ...(hidden > 0 ? [`and ${hidden} older (--max)`] : [])].join('\n')}\n`);
}

const KEY_MAX = 40;

/** A key is whatever its producer made it: on a terminal only what can be printed. */
function printable(key: string | null): string {
  const text = (key ?? '–').replaceAll(/[\p{Cc}\p{Cf}\ufffd]/gu, '·');
  return text.length <= KEY_MAX ? text : `${text.slice(0, KEY_MAX - 1)}…`;
}
