import type { Cancel, Clock } from '../../ports/clock.ts';
import type { KnownGood, LastKnownGood } from '../../ports/last-known-good.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

export interface KnownGoodKeeperOptions {
  lastKnownGood: LastKnownGood;
  scope: string;
  clock: Clock;
  telemetry: Telemetry;
}

/** A full disk is not filled with log lines, and a router that restarts meanwhile starts with what is one epoch old. */
const RETRY_MS = 10_000;

/** Keeps what passed every check for the next start: each epoch once, and the newest again and again while it cannot be written. */
export class KnownGoodKeeper {
  readonly #options: KnownGoodKeeperOptions;
  #keptEpoch = 0;
  /** Not written yet. */
  #wanted: KnownGood | undefined;
  #saving: Promise<void> | undefined;
  #cancelRetry: Cancel | undefined;
  #closed = false;

  constructor(options: KnownGoodKeeperOptions) {
    this.#options = options;
  }

  /** An earlier life kept this epoch. */
  hasKept(epoch: number): void {
    this.#keptEpoch = epoch;
  }

  /** Whether nothing of this epoch, or a later one, is kept or about to be. */
  lacks(epoch: number): boolean {
    return epoch > Math.max(this.#keptEpoch, this.#wanted?.pointer.epoch ?? 0);
  }

  keep(good: KnownGood): void {
    if (this.#closed || !this.lacks(good.pointer.epoch)) return;
    this.#wanted = good;
    this.#saveSoon();
  }

  /** Resolves when what is being written is written to its end. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry?.();
    await this.#saving;
  }

  #saveSoon(): void {
    this.#cancelRetry?.();
    this.#saving ??= this.#saveNewest().finally(() => {
      this.#saving = undefined;
    });
  }

  async #saveNewest(): Promise<void> {
    const { lastKnownGood, scope, clock, telemetry } = this.#options;
    while (this.#wanted !== undefined) {
      const good = this.#wanted;
      const { epoch } = good.pointer;
      try {
        await lastKnownGood.save(scope, good);
      } catch (error) {
        const what = { scope, epoch, error: String(error) };
        telemetry.logger.warn(what, 'the policy in force could not be kept on disk; trying again');
        if (!this.#closed) this.#cancelRetry = clock.after(RETRY_MS, () => this.#saveSoon());
        return;
      }
      this.#keptEpoch = epoch;
      if (this.#wanted === good) this.#wanted = undefined;
    }
  }
}
