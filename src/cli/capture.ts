import { appendFileSync, closeSync, existsSync, ftruncateSync, openSync, rmSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import type { Connection } from '../client/connection.ts';
import { loadSettings } from '../config/load-settings.ts';
import { fileError } from '../config/user-file.ts';
import { schemaOf } from '../contracts/headers.ts';
import type { Records } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { bucketOf, thresholdOf } from '../core/rollout/bucket.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';
import { CaptureJoin, type CorpusLine } from './capture-join.ts';
import type { CliContext } from './context.ts';
import { count, duration } from './flags.ts';
import { openingConnection } from './opening.ts';
import { Progress } from './progress.ts';
import { requireKafka } from './require-kafka.ts';

interface CaptureFlags {
  out: string;
  max: number;
  duration?: number;
  sample: number;
  fromBeginning: boolean;
  json: boolean;
}

const MAX_DEFAULT = 100_000;
const TICK_MS = 100;
const LEARN_RETRY_MS = 500;
/** For the results of the last requests, after the last one was taken. */
const LAST_RESULTS_MS = 5_000;
/** A share of the requests by a hash that no rollout uses: the sample says nothing about an arm. */
const SALT = 'capture';

/** `millrace capture`: live signals and decisions, for `millrace policy diff --corpus`. */
export function captureCommand(context: CliContext): Command {
  return new Command('capture')
    .description(
      'Record the signals of live requests and how they were decided, without payloads, as a corpus for policy diff',
    )
    .requiredOption(
      '--out <file>',
      'where the corpus goes: one JSON object per line; a file that is there is never overwritten',
    )
    .option('--max <n>', 'end after so many requests', count, MAX_DEFAULT)
    .option('--duration <time>', 'end after so long', duration)
    .option(
      '--sample <share>',
      'take only this share of the requests, by a hash of their id: 0.1 is every tenth',
      share,
      1,
    )
    .option('--from-beginning', 'start with the oldest request that is kept (1 h)', false)
    .option('--json', 'print the summary as one JSON object', false)
    .addHelpText(
      'after',
      `
Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Reads the features topic and scored-results beside the pipeline:
no consumer group, nothing is committed. Ends after --max or --duration, or with Ctrl-C; what was recorded until then is in the file.

A line has the signals and the context of a request, and of the decision that answered it the leaf, the arm and the policy's digest. Ids, bucket
keys, candidates and tensors are never written. A router that is fused with its extractor has no features topic, and so nothing to record.

Examples:
  millrace capture --out requests.jsonl --max 10000
  millrace capture --out hour.jsonl --duration 1h --sample 0.05
  millrace policy diff live.yaml next.yaml --corpus requests.jsonl`,
    )
    .action((flags: CaptureFlags) => capture(context, flags));
}

/** Above 0, at most 1. */
function share(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 1) return value;
  throw new InvalidArgumentError('Allowed: a number above 0, at most 1, such as 0.1.');
}

async function capture(context: CliContext, flags: CaptureFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  requireKafka(settings);
  if (existsSync(flags.out)) throw taken(flags.out);
  // Nobody asked what the bus connects to.
  const logLevel = settings.logLevel === 'info' ? 'error' : settings.logLevel;
  const connection = await openingConnection(context, context.transport({ ...settings, logLevel }));
  let file: CorpusFile | undefined;
  try {
    file = new CorpusFile(flags.out);
    const recording = new Recording(connection, flags, file);
    const startedMs = context.clock.monotonicMs();
    await recording.run(context);
    report(context, flags, recording, context.clock.monotonicMs() - startedMs);
  } finally {
    await connection.close();
    file?.close();
  }
}

/** Both topics, joined into the file. */
class Recording {
  readonly join: CaptureJoin;
  unreadable = 0;
  readonly #connection: Connection;
  readonly #flags: CaptureFlags;
  readonly #file: CorpusFile;
  #ended = false;

  constructor(connection: Connection, flags: CaptureFlags, file: CorpusFile) {
    this.#connection = connection;
    this.#flags = flags;
    this.#file = file;
    const threshold = thresholdOf(flags.sample * 100);
    this.join = new CaptureJoin({
      max: flags.max,
      isSampled: (requestId) => bucketOf(SALT, requestId) < threshold,
      onLine: (line) => file.write(line),
    });
  }

  async run(context: CliContext): Promise<void> {
    const { join } = this;
    const { clock } = this.#connection;
    // Results first: a decision that is there before its request waits for it, the other way round it might be missed.
    const results = await this.#read('scored-results', 'ScoredResult', (result) =>
      join.takeResult(result, clock.monotonicMs()),
    );
    const features = await this.#read('features', 'RoutableRequest', (request) =>
      join.takeRequest(request, clock.monotonicMs()),
    );
    const progress = new Progress(context.stderr, clock, {
      total: this.#flags.max,
      done: () => join.accepted,
      line: () => `${join.accepted} of ${this.#flags.max} requests taken`,
    });
    const interrupted = context.interruption();
    await this.#until(() => join.isFull || interrupted.aborted, this.#flags.duration);
    await features.close();
    await this.#until(() => join.waiting === 0 || interrupted.aborted, LAST_RESULTS_MS);
    this.#ended = true;
    await results.close();
    join.flush();
    this.#file.flush();
    progress.end();
  }

  async #until(isDone: () => boolean, timeoutMs: number | undefined): Promise<void> {
    const { clock } = this.#connection;
    const untilMs = clock.monotonicMs() + (timeoutMs ?? Number.POSITIVE_INFINITY);
    while (!isDone() && clock.monotonicMs() < untilMs) {
      await new Promise<void>((resolve) => clock.after(TICK_MS, resolve));
      this.join.expire(clock.monotonicMs());
      this.#file.flush();
    }
  }

  #read<N extends 'RoutableRequest' | 'ScoredResult'>(
    topic: 'features' | 'scored-results',
    name: N,
    take: (record: Records[N]) => void,
  ): Promise<Reader> {
    const { bus, topics, codecs, clock } = this.#connection;
    const codec = codecs.for(name);
    const one = (record: InboundRecord): void => {
      if (this.#ended) return;
      const decoded = codec.decode(record.value, schemaOf(record.headers));
      if (decoded.status === 'ok') take(decoded.value);
      else if (decoded.status === 'unreadable') this.unreadable += 1;
      else
        codecs.learn(decoded).then(
          () => one(record),
          () => clock.after(LEARN_RETRY_MS, () => one(record)),
        );
    };
    const startAt = this.#flags.fromBeginning ? 'earliest' : 'latest';
    return bus.read({ topics: [topics.fixed(topic)], startAt }, (records) => records.forEach(one));
  }
}

function report(
  context: CliContext,
  flags: CaptureFlags,
  { join, unreadable }: Recording,
  durationMs: number,
): void {
  const { accepted, decided, undecided } = join;
  const leaves = Object.fromEntries([...join.leaves].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])));
  if (accepted === 0) {
    context.exitCode = 1;
    context.stderr.write(
      'millrace: no request was recorded, and no file is kept. Is there traffic? A router that is fused with its extractor has no features topic to read\n',
    );
  }
  if (flags.json) {
    const summary = {
      ...(accepted === 0 ? {} : { file: flags.out }),
      requests: accepted,
      decided,
      undecided,
      leaves,
      unreadable,
      durationMs: Math.round(durationMs),
    };
    context.stdout.write(`${JSON.stringify(summary)}\n`);
    return;
  }
  const shares = Object.entries(leaves).map(
    ([leaf, many]) => `  ${leaf} ${many} (${((100 * many) / decided).toFixed(1)} %)`,
  );
  const lines = [
    `${accepted} requests${accepted === 0 ? '' : ` in ${flags.out}`}: ${decided} with their decision, ${undecided} without`,
    ...shares,
    ...(unreadable === 0 ? [] : [`${unreadable} records could not be read`]),
  ];
  context.stdout.write(`${lines.join('\n')}\n`);
}

/** What is there of a corpus is whole lines, even where the disk is full; a file without any does not stay, so that the next try can have its name. */
class CorpusFile {
  readonly #file: string;
  readonly #handle: number;
  #lines: string[] = [];
  #bytes = 0;

  /** Its owner's only: context can tell something about a person. @throws MillraceError INVALID_CONFIG where it cannot be made */
  constructor(file: string) {
    this.#file = file;
    try {
      this.#handle = openSync(file, 'wx', 0o600);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw taken(file);
      throw fileError('the file cannot be written', file, error, 'written');
    }
  }

  write(line: CorpusLine): void {
    this.#lines.push(`${JSON.stringify(line)}\n`);
  }

  /** @throws MillraceError INVALID_CONFIG where the lines since the last time cannot be written: they are lost */
  flush(): void {
    if (this.#lines.length === 0) return;
    const bytes = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    try {
      appendFileSync(this.#handle, bytes);
      this.#bytes += bytes.length;
    } catch (error) {
      ftruncateSync(this.#handle, this.#bytes);
      throw fileError('the file cannot be written', this.#file, error, 'written');
    }
  }

  close(): void {
    try {
      this.flush();
    } finally {
      closeSync(this.#handle);
      if (this.#bytes === 0) rmSync(this.#file, { force: true });
    }
  }
}

function taken(file: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', 'the file is there already, and a corpus is never overwritten', {
    value: file,
    advice: 'Give another --out',
  });
}
