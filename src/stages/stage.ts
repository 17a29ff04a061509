import type { Codecs } from '../contracts/codec.ts';
import type { TopicNames } from '../contracts/topics.ts';
import { MillraceError } from '../core/errors.ts';
import type { TopicDelay } from '../core/latency/topic-delay.ts';
import type { Clock } from '../ports/clock.ts';
import type { MessageBus, OutboundRecord } from '../ports/message-bus.ts';
import type { RandomSource } from '../ports/random.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { createDeadLetters, type DeadLettersOptions } from './dead-letters.ts';
import { createResultWriter, type ResultWriter } from './results.ts';
import type { DeadLetters } from './run-stage.ts';

/** What every stage is given; nothing is reached for. */
export interface StageDeps {
  bus: MessageBus;
  codecs: Codecs;
  topics: TopicNames;
  clock: Clock;
  random: RandomSource;
  telemetry: Telemetry;
  topicDelay: TopicDelay;
}

/** A stage that runs. */
export interface Stage {
  readonly name: string;
  /** Why it cannot do its work now; undefined when it can. */
  unready(): string | undefined;
  /** Requests taken and not finished. */
  inFlight(): number;
  /** Stops taking, finishes what was taken, commits, leaves. */
  close(): Promise<void>;
}

/** A fetch older than this means that the broker is away. */
const FETCH_STALE_MS = 15_000;

export function staleFetch(sinceLastFetchMs: number): string | undefined {
  return sinceLastFetchMs > FETCH_STALE_MS
    ? `the broker last answered ${Math.round(sinceLastFetchMs / 1_000)} s ago`
    : undefined;
}

export async function openResults(deps: StageDeps): Promise<ResultWriter> {
  const topic = deps.topics.fixed('scored-results');
  const partitions = await deps.bus.partitionCount(topic);
  const ended = deps.telemetry.counter({
    name: 'millrace_ended_total',
    help: 'Requests that this process ended without scores, by outcome and reason.',
    labels: ['outcome', 'code'],
  });
  return createResultWriter(deps.codecs.for('ScoredResult'), topic, partitions, (outcome, code) =>
    ended.add(1, { outcome: outcome.toLowerCase(), code }),
  );
}

/** Dead letters of one source topic; its dead-letter topic must exist. */
export async function openDeadLetters<T>(
  deps: StageDeps,
  sources: readonly string[],
  options: Pick<DeadLettersOptions<T>, 'stage' | 'results' | 'payload' | 'requestOf' | 'requestIn'>,
): Promise<DeadLetters<T>> {
  const partitions = new Map<string, number>();
  for (const source of sources) {
    const topic = deps.topics.deadLetter(source);
    partitions.set(topic, await deps.bus.partitionCount(topic));
  }
  return createDeadLetters({
    ...options,
    topics: deps.topics,
    partitionsOf: (topic) => partitions.get(topic) ?? 1,
  });
}

/**
 * Produces what nobody's work depends on (metrics, heartbeats, acknowledgements). Resolves when it is stored or refused; a refusal is logged,
 * never thrown, and so is a record that has grown too large to be written.
 *
 * Whatever else `make` throws is a fault of this process. Nobody waits for the promise that rejects with it, and so it ends the process, whichever timer or
 * callback asked for the record and whatever that one catches: a worker that could not tell of itself any more would hold slots that nobody uses.
 */
export async function produceAside(
  { bus, telemetry }: Pick<StageDeps, 'bus' | 'telemetry'>,
  topic: string,
  make: () => Omit<OutboundRecord, 'topic'>,
): Promise<void> {
  const refused = (error: unknown): void =>
    telemetry.logger.warn({ topic, error: String(error) }, 'a record was refused');
  let record: OutboundRecord;
  try {
    record = { ...make(), topic };
  } catch (error) {
    if (!(error instanceof MillraceError && error.code === 'TOO_LARGE')) throw error;
    refused(error);
    return;
  }
  await bus.produce(record).catch(refused);
}
