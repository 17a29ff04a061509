import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { backoffMs, isPowerOfTwo, TIMERS } from './backoff.ts';
import type { KafkaClient, PartitionBatch, SendOutcome } from './client.ts';
import type { Outbox } from './outbox.ts';

const REQUEST_RECORDS_MAX = 4_000;
const REQUEST_BYTES_MAX = 8 * 2 ** 20;
/** Of one partition, and so of one Kafka record batch: a little below the broker's default of 1 MiB for max.message.bytes. */
const BATCH_BYTES_MAX = 960 * 2 ** 10;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;
/** After so many failures in a row the client's connections are not trusted any more. */
const RESET_AFTER_FAILURES = 8;
/** Connections that cannot even be closed are left behind. */
const RESET_TIMEOUT_MS = 3_000;
const NO_OUTCOME: SendOutcome = {
  status: 'delayed',
  error: new Error('the client said nothing of this partition'),
};

export interface SendLaneOptions {
  client: Pick<KafkaClient, 'send' | 'resetSending'>;
  leader: number;
  logger: Logger;
  /** The broker answered for what is in flight of the outbox. The lane has done with it; it is added again when it has more. */
  settle(outbox: Outbox, outcome: SendOutcome): void;
  /** Nothing is known of what is in flight: the outboxes have to find their way again, this lane or another. */
  reroute(outboxes: readonly Outbox[]): Promise<void>;
  onRetry(): void;
}

/** The way to one broker: one request in flight, holding what gathered in the partitions that this broker leads. */
export class SendLane {
  readonly #options: SendLaneOptions;
  #queued: Outbox[] = [];
  #isBusy = false;
  #closed = false;
  #failures = 0;

  constructor(options: SendLaneOptions) {
    this.#options = options;
  }

  add(outbox: Outbox): void {
    outbox.state = 'queued';
    this.#queued.push(outbox);
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#queued = [];
  }

  /** Not at once: what the current turn of the event loop still produces belongs to the same batch. */
  #schedule(): void {
    if (this.#isBusy || this.#closed || this.#queued.length === 0) return;
    this.#isBusy = true;
    setImmediate(() => void this.#run());
  }

  /**
   * What the broker does is an outcome. Anything else that fails is a fault of this process and ends it: records in flight would be neither stored nor
   * rejected, and those behind them would wait for ever.
   */
  async #run(): Promise<void> {
    await this.#sendGathered();
    this.#isBusy = false;
    this.#schedule();
  }

  async #sendGathered(): Promise<void> {
    const { batches, outboxes } = this.#gather();
    let outcomes: readonly SendOutcome[] | undefined;
    try {
      outcomes = await this.#options.client.send(batches);
      this.#failures = 0;
    } catch (error) {
      await this.#recover(outboxes, error);
    }
    if (outcomes !== undefined) {
      for (const [index, outbox] of outboxes.entries())
        this.#options.settle(outbox, outcomes[index] ?? NO_OUTCOME);
    }
  }

  #gather(): { batches: PartitionBatch[]; outboxes: readonly Outbox[] } {
    const queued = this.#queued;
    const batches: PartitionBatch[] = [];
    let records = 0;
    let bytes = 0;
    for (const outbox of queued) {
      if (records >= REQUEST_RECORDS_MAX || bytes >= REQUEST_BYTES_MAX) break;
      const sent = outbox.send({
        count: REQUEST_RECORDS_MAX - records,
        bytes: Math.min(BATCH_BYTES_MAX, REQUEST_BYTES_MAX - bytes),
      });
      batches.push(sent.batch);
      records += sent.batch.records.length;
      bytes += sent.bytes;
    }
    this.#queued = queued.slice(batches.length);
    return { batches, outboxes: queued.slice(0, batches.length) };
  }

  async #recover(outboxes: readonly Outbox[], error: unknown): Promise<void> {
    const { leader, logger, onRetry, reroute } = this.#options;
    const waitMs = backoffMs(this.#failures++, RETRY_FIRST_MS, RETRY_MOST_MS);
    onRetry();
    if (isPowerOfTwo(this.#failures)) {
      logger.warn(
        { error, broker: leader, failures: this.#failures },
        'no answer from the broker; records wait',
      );
    }
    if (this.#failures % RESET_AFTER_FAILURES === 0) await this.#reset();
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const all = [...outboxes, ...this.#queued];
    this.#queued = [];
    for (const outbox of outboxes) outbox.unsent();
    if (!this.#closed) await reroute(all);
  }

  async #reset(): Promise<void> {
    const { client, logger, leader } = this.#options;
    try {
      await within(TIMERS, client.resetSending(), RESET_TIMEOUT_MS, undefined);
    } catch (error) {
      logger.warn({ error, broker: leader }, 'connections could not be closed; new ones are opened');
    }
  }
}
