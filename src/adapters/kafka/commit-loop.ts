import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { TIMERS } from './backoff.ts';
import type { PartitionOffset, Session } from './client.ts';

const INTERVAL_MS = 100;
const LAST_COMMIT_TIMEOUT_MS = 2_000;

/** What the loop needs to know of an owned partition. */
export interface Committable {
  readonly topic: string;
  readonly partition: number;
  readonly queue: { readonly committable: number };
  /** What the group knows; -1 for nothing yet. */
  committed: number;
}

/**
 * Commits behind the work: acknowledging only arms a timer, and one request carries what all partitions gained meanwhile.
 * Offsets are read, and the session's generation with them, in the moment of the request: a partition that went away in between is not
 * in it, and a generation that is over makes the broker refuse it.
 */
export class CommitLoop {
  readonly #session: () => Session | undefined;
  readonly #owned: () => readonly Committable[];
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<boolean> | undefined;

  constructor(session: () => Session | undefined, owned: () => readonly Committable[], logger: Logger) {
    this.#session = session;
    this.#owned = owned;
    this.#logger = logger;
  }

  /** Something was acknowledged. */
  soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#commitAnew().then((done) => {
        if (!done) this.soon();
      });
    }, INTERVAL_MS);
  }

  /** Commits what there is, before partitions are let go. Resolves after some seconds at the latest. */
  async now(): Promise<void> {
    await within(TIMERS, this.#commitAnew(), LAST_COMMIT_TIMEOUT_MS, false);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** A commit that is under way read its offsets some time ago, and may take long: what was acknowledged since is in the one after it. */
  async #commitAnew(): Promise<boolean> {
    await this.#running;
    return this.#commit();
  }

  /** False where it should be tried again. */
  #commit(): Promise<boolean> {
    this.#running ??= this.#send().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #send(): Promise<boolean> {
    const session = this.#session();
    if (session === undefined) return true;
    const behind = this.#owned().filter(({ queue, committed }) => queue.committable !== committed);
    if (behind.length === 0) return true;
    const offsets: PartitionOffset[] = behind.map(({ topic, partition, queue }) => ({
      topic,
      partition,
      offset: queue.committable,
    }));
    try {
      await session.commit(offsets);
    } catch (error) {
      this.#logger.debug({ error, partitions: offsets.length }, 'a commit was refused');
      return false;
    }
    for (const [index, partition] of behind.entries())
      partition.committed = offsets[index]?.offset ?? partition.committed;
    return true;
  }
}
