import type { RunningStage } from '../run-stage.ts';
import { staleFetch } from '../stage.ts';

/** The slots of one worker: a partition of its pool's dispatch topic each, in a consumer group of its own, so that one can come or go alone. */
export class HeldSlots {
  readonly #open: (slot: number) => Promise<RunningStage>;
  readonly #joining = new Map<number, Promise<void>>();
  readonly #joined = new Map<number, RunningStage>();
  readonly #leaving = new Map<RunningStage, Promise<void>>();
  #closed = false;

  constructor(open: (slot: number) => Promise<RunningStage>) {
    this.#open = open;
  }

  /** Resolves once the worker is a member of the slot's group; it owns the slot when nobody else does. */
  async join(slot: number): Promise<void> {
    if (this.#closed || this.#joining.has(slot) || this.#joined.has(slot)) return;
    const joining = this.#open(slot).then((running) => {
      this.#joined.set(slot, running);
    });
    this.#joining.set(slot, joining);
    try {
      await joining;
    } finally {
      this.#joining.delete(slot);
    }
  }

  /** Finishes what came from the slot, commits, and leaves its group; from the start it is no longer among those owned. */
  async leave(slot: number): Promise<void> {
    const running = this.#joined.get(slot);
    if (running === undefined) return;
    this.#joined.delete(slot);
    const left = running.close();
    this.#leaving.set(running, left);
    try {
      await left;
    } finally {
      this.#leaving.delete(running);
    }
  }

  /** Slots whose groups the worker is in, or joins. */
  wanted(): number[] {
    return [...this.#joining.keys(), ...this.#joined.keys()];
  }

  owned(): number[] {
    return [...this.#joined.values()].flatMap((running) =>
      running.assigned().map(({ partition }) => partition),
    );
  }

  inFlight(): number {
    return [...this.#joined.values(), ...this.#leaving.keys()].reduce(
      (sum, running) => sum + running.inFlight(),
      0,
    );
  }

  unready(): string | undefined {
    return [...this.#joined.values()]
      .map((running) => staleFetch(running.sinceLastFetchMs()))
      .find((reason) => reason !== undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#joining.values());
    await Promise.all([
      ...[...this.#joined.values()].map((running) => running.close()),
      ...this.#leaving.values(),
    ]);
  }
}
