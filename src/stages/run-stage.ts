import type { RecordCodec } from '../contracts/codec.ts';
import { type ErrorCode, MillraceError } from '../core/errors.ts';
import type {
  InboundRecord,
  OutboundRecord,
  SubscribeOptions,
  Subscription,
  TopicPartition,
} from '../ports/message-bus.ts';
import type { StageDeps } from './stage.ts';

/** A record that was decoded and now belongs to the stage, until it is finished or abandoned. */
export interface Delivery<T> {
  readonly record: InboundRecord;
  readonly value: T;
  /** On the local monotonic clock. */
  readonly receivedAtMs: number;
  /** How long it lay in its topic, ms. */
  readonly inTopicMs: number;
  /** Produces `outputs` and, once the bus has stored them all, acknowledges the record. Exactly one call per delivery. */
  finish(outputs: readonly OutboundRecord[]): void;
  /** Ends the record as a dead letter: its bytes on the dead-letter topic, and a result that says so. */
  deadLetter(code: ErrorCode, message: string): void;
  /** Gives the record up without acknowledging it: its partition went away and the next owner gets it again. */
  abandon(): void;
}

/** What a stage answers for a record that it cannot read or cannot work on. `hash`: the dead letter must do without the record's bytes. */
export type DeadLetters<T> = (
  record: InboundRecord,
  value: T | undefined,
  code: ErrorCode,
  message: string,
  payload?: 'hash',
) => readonly OutboundRecord[];

/** Other outputs in place of those that are too large for their topics. */
type Smaller = (refused: readonly OutboundRecord[], reason: string) => void;

export interface StageInput<T> {
  name: string;
  subscription: SubscribeOptions;
  codec: RecordCodec<T>;
  /** Takes the delivery over. A throw is tried again (`tries` in all) and then becomes a dead letter. */
  handle(delivery: Delivery<T>): void;
  deadLetters: DeadLetters<T>;
  /** Partitions go away: abandon the matching deliveries that have not been started. */
  abandon?(gone: (record: InboundRecord) => boolean): void;
  onAssigned?(partitions: readonly TopicPartition[]): void;
  tries: number;
}

export interface RunningStage {
  /** Deliveries taken and not yet finished. */
  inFlight(): number;
  sinceLastFetchMs(): number;
  assigned(): readonly TopicPartition[];
  close(): Promise<void>;
}

const LEARN_RETRY_MS = 500;

/** The one loop of every stage: decode → admit → run → publish → acknowledge. */
export async function runStage<T>(deps: StageDeps, input: StageInput<T>): Promise<RunningStage> {
  const loop = new StageLoop(deps, input);
  await loop.start();
  return loop;
}

class StageLoop<T> implements RunningStage {
  readonly #deps: StageDeps;
  readonly #input: StageInput<T>;
  readonly #inFlight = new Map<string, number>();
  readonly #drained: (() => void)[] = [];
  /** Schemas whose look-up failed, and that records wait for. */
  readonly #schemasAwaited = new Set<number>();
  #total = 0;
  #closed = false;
  #subscription: Subscription | undefined;

  constructor(deps: StageDeps, input: StageInput<T>) {
    this.#deps = deps;
    this.#input = input;
  }

  async start(): Promise<void> {
    const { bus, telemetry } = this.#deps;
    const log = telemetry.logger.child({ stage: this.#input.name });
    this.#subscription = await bus.subscribe(this.#input.subscription, {
      onRecords: (records) => {
        for (const record of records) this.#receive(record);
      },
      onAssigned: (partitions) => this.#input.onAssigned?.(partitions),
      onRevoked: (partitions) => this.#release(partitions),
      onLost: (partitions) => this.#input.abandon?.(matching(partitions)),
      onError: (error) => log.warn({ error: String(error) }, 'the bus reported an error; it goes on trying'),
    });
  }

  inFlight(): number {
    return this.#total;
  }

  sinceLastFetchMs(): number {
    return this.#subscription?.sinceLastFetchMs() ?? Number.POSITIVE_INFINITY;
  }

  assigned(): readonly TopicPartition[] {
    return this.#subscription?.assigned() ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#subscription?.close();
  }

  #receive(record: InboundRecord): void {
    const receivedAtMs = this.#deps.clock.monotonicMs();
    const inTopicMs = this.#deps.topicDelay.inTopicMs(
      record.topic,
      record.partition,
      record.timestampMs,
      receivedAtMs,
    );
    this.#count(record, 1);
    this.#decode(record, receivedAtMs, inTopicMs);
  }

  #decode(record: InboundRecord, receivedAtMs: number, inTopicMs: number): void {
    const decoded = this.#input.codec.decode(record.value);
    switch (decoded.status) {
      case 'ok':
        this.#try(this.#delivery(record, decoded.value, receivedAtMs, inTopicMs), 1);
        return;
      case 'unreadable':
        this.#deadLetter(record, undefined, decoded.code, decoded.message);
        return;
      case 'schema-unknown':
        this.#learn(record, decoded.schemaId, receivedAtMs, inTopicMs);
        return;
      default:
        decoded satisfies never;
    }
  }

  /** A registry that is away is never the record's fault: the record waits, and with it the commit of its partition. */
  #learn(record: InboundRecord, schemaId: number, receivedAtMs: number, inTopicMs: number): void {
    this.#deps.codecs.learn(schemaId).then(
      () => {
        this.#schemasAwaited.delete(schemaId);
        this.#decode(record, receivedAtMs, inTopicMs);
      },
      (error: unknown) => {
        this.#warnOfSchema(schemaId, error);
        this.#deps.clock.after(LEARN_RETRY_MS, () => {
          if (this.#closed) this.#count(record, -1);
          else this.#decode(record, receivedAtMs, inTopicMs);
        });
      },
    );
  }

  /** Once per schema and outage, however many records wait for it. */
  #warnOfSchema(schemaId: number, error: unknown): void {
    if (this.#schemasAwaited.has(schemaId)) return;
    this.#schemasAwaited.add(schemaId);
    this.#deps.telemetry.logger.warn(
      { stage: this.#input.name, schemaId, error: String(error) },
      'schema look-up failed; records that need it wait, and it is tried again',
    );
  }

  #delivery(record: InboundRecord, value: T, receivedAtMs: number, inTopicMs: number): Delivery<T> {
    return {
      record,
      value,
      receivedAtMs,
      inTopicMs,
      finish: (outputs) => this.#finish(record, value, outputs),
      deadLetter: (code, message) => this.#deadLetter(record, value, code, message),
      abandon: () => this.#count(record, -1),
    };
  }

  #try(delivery: Delivery<T>, attempt: number): void {
    try {
      this.#input.handle(delivery);
    } catch (error) {
      const log = this.#deps.telemetry.logger;
      log.warn(
        {
          stage: this.#input.name,
          attempt,
          topic: delivery.record.topic,
          partition: delivery.record.partition,
          offset: delivery.record.offset,
          error: String(error),
        },
        'a record could not be handled',
      );
      if (attempt >= this.#input.tries) {
        const code = error instanceof MillraceError ? error.code : 'POISON';
        this.#deadLetter(
          delivery.record,
          delivery.value,
          code,
          `failed ${attempt} times: ${messageOf(error)}`,
        );
        return;
      }
      this.#deps.clock.after(attempt * 10, () => this.#try(delivery, attempt + 1));
    }
  }

  #finish(record: InboundRecord, value: T, outputs: readonly OutboundRecord[]): void {
    this.#publish(record, outputs, (_, reason) => this.#deadLetter(record, value, 'TOO_LARGE', reason));
  }

  /** A dead letter that is too large for its topic keeps the digest of the record's bytes, so that it stops no partition for good. */
  #deadLetter(record: InboundRecord, value: T | undefined, code: ErrorCode, message: string): void {
    const { deadLetters } = this.#input;
    this.#publish(record, deadLetters(record, value, code, message), (refused) => {
      const topics = refused.map(({ topic }) => topic);
      const hashed = deadLetters(record, value, code, message, 'hash');
      this.#publish(
        record,
        hashed.filter(({ topic }) => topics.includes(topic)),
      );
    });
  }

  #publish(record: InboundRecord, outputs: readonly OutboundRecord[], smaller?: Smaller): void {
    let pending = outputs.length;
    if (pending === 0) {
      this.#acknowledge(record);
      return;
    }
    const refused: OutboundRecord[] = [];
    let failure: unknown;
    const settled = (): void => {
      pending -= 1;
      if (pending > 0) return;
      if (refused.length === 0) this.#acknowledge(record);
      else this.#refused(record, refused, failure, smaller);
    };
    for (const output of outputs) {
      this.#deps.bus.produce(output).then(settled, (error: unknown) => {
        failure ??= error;
        refused.push(output);
        settled();
      });
    }
  }

  /** The bus refused outputs for good: what is too large is replaced, where it can be; a closed bus leaves the record to the next owner. */
  #refused(
    record: InboundRecord,
    refused: readonly OutboundRecord[],
    failure: unknown,
    smaller: Smaller | undefined,
  ): void {
    const code = failure instanceof MillraceError ? failure.code : 'POISON';
    this.#deps.telemetry.logger.error(
      {
        stage: this.#input.name,
        topics: refused.map((output) => output.topic),
        code,
        error: messageOf(failure),
      },
      'an output was refused',
    );
    if (code === 'TOO_LARGE' && smaller !== undefined) smaller(refused, messageOf(failure));
    else if (this.#closed) this.#count(record, -1);
    else this.#deps.clock.after(LEARN_RETRY_MS, () => this.#publish(record, refused, smaller));
  }

  #acknowledge(record: InboundRecord): void {
    this.#subscription?.acknowledge(record);
    this.#count(record, -1);
  }

  async #release(partitions: readonly TopicPartition[]): Promise<void> {
    const gone = matching(partitions);
    this.#input.abandon?.(gone);
    const keys = partitions.map((partition) => keyOf(partition));
    while (keys.some((key) => (this.#inFlight.get(key) ?? 0) > 0)) {
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
  }

  #count(record: InboundRecord, change: 1 | -1): void {
    const key = keyOf(record);
    const count = (this.#inFlight.get(key) ?? 0) + change;
    this.#inFlight.set(key, count);
    this.#total += change;
    if (count <= 0) for (const resolve of this.#drained.splice(0)) resolve();
  }
}

function keyOf(where: TopicPartition): string {
  return `${where.topic}/${where.partition}`;
}

function matching(partitions: readonly TopicPartition[]): (record: InboundRecord) => boolean {
  const keys = new Set(partitions.map((partition) => keyOf(partition)));
  return (record) => keys.has(keyOf(record));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
