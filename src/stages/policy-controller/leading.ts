import type { ControlCommand } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { Gauge, Logger, Telemetry } from '../../ports/telemetry.ts';
import type { Delivery } from '../run-stage.ts';
import type { Controller } from './controller.ts';

/** From the assignment of the control topic's partition until it goes away. */
interface Leadership {
  over: AbortController;
  /** The state is replayed and the term taken. */
  leads: boolean;
}

const RETRY_MS = 500;
/** Each try reads the logs from their beginning, and what is missing somebody has to restore. */
const UNREADABLE_RETRY_MS = 5_000;

/** Has a controller lead while it owns the control topic's partition: its commands and looks one after another, in the order in which they came. */
export class Leading {
  readonly #controller: Pick<Controller, 'lead' | 'handle' | 'state'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #committed: () => Promise<number>;
  /** Commands whose turn has not come. */
  readonly #queued = new Set<Delivery<ControlCommand>>();
  readonly #unreadable: Gauge;
  #leadership: Leadership | undefined;
  #obstacle: string | undefined;
  #work: Promise<void> = Promise.resolve();

  /** @param committed offset of the first command that is not decided yet */
  constructor(
    controller: Pick<Controller, 'lead' | 'handle' | 'state'>,
    clock: Clock,
    log: Logger,
    telemetry: Pick<Telemetry, 'gauge'>,
    committed: () => Promise<number>,
  ) {
    this.#controller = controller;
    this.#clock = clock;
    this.#log = log;
    this.#committed = committed;
    this.#unreadable = telemetry.gauge({
      name: 'millrace_control_log_unreadable',
      help: '1 while this controller should lead and cannot, for it cannot read the control log; 0 otherwise.',
    });
    this.#unreadable.set(0);
  }

  /** Why it should lead and cannot until somebody mends something; undefined where that is not so. */
  get obstacle(): string | undefined {
    return this.#obstacle;
  }

  begin(): void {
    const own: Leadership = { over: new AbortController(), leads: false };
    this.#leadership = own;
    this.#enqueue(() => this.#takeOver(own));
  }

  end(): void {
    this.#leadership?.over.abort();
    this.#leadership = undefined;
    this.#setObstacle(undefined);
    for (const delivery of this.#queued) delivery.abandon();
    this.#queued.clear();
  }

  take(delivery: Delivery<ControlCommand>): void {
    const over = this.#leadership?.over.signal;
    if (over === undefined) {
      delivery.abandon();
      return;
    }
    this.#queued.add(delivery);
    this.#enqueue(() => this.#decide(delivery, over));
  }

  /** In its turn among the commands, and never twice at once. */
  periodically(periodMs: number, step: (over: AbortSignal) => Promise<void>): Cancel {
    let isQueued = false;
    return this.#clock.every(periodMs, () => {
      if (this.#leadership?.leads !== true || isQueued) return;
      isQueued = true;
      const { signal } = this.#leadership.over;
      this.#enqueue(async () => {
        try {
          if (!signal.aborted) await step(signal);
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          isQueued = false;
        }
      });
    });
  }

  #enqueue(step: () => Promise<void>): void {
    this.#work = this.#work.then(step).catch((error: unknown) => {
      this.#log.error({ error: String(error) }, 'a step of the controller failed');
    });
  }

  async #takeOver(own: Leadership): Promise<void> {
    const { signal } = own.over;
    const step = async (): Promise<void> => this.#controller.lead(await this.#committed(), signal);
    own.leads = await this.#insist('lead', signal, step, () => false);
    this.#setObstacle(undefined);
    if (own.leads) this.#log.info({ term: this.#controller.state.term }, 'this controller leads');
  }

  async #decide(delivery: Delivery<ControlCommand>, over: AbortSignal): Promise<void> {
    if (!this.#queued.delete(delivery)) return;
    try {
      const step = (): Promise<void> => this.#controller.handle(delivery.record, delivery.value, over);
      const isDecided = await this.#insist('command', over, step, (error) => !isRetryable(error));
      if (isDecided) delivery.finish([]);
      else delivery.abandon();
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'POISON';
      delivery.deadLetter(code, error instanceof Error ? error.message : String(error));
    }
  }

  /** @returns false where the leadership was over before it worked. @throws what `isHopeless` says no further try can mend */
  async #insist(
    what: string,
    over: AbortSignal,
    step: () => Promise<void>,
    isHopeless: (error: unknown) => boolean,
  ): Promise<boolean> {
    while (!over.aborted) {
      try {
        await step();
        return true;
      } catch (error) {
        if (over.aborted) return false;
        if (isHopeless(error)) throw error;
        await new Promise<void>((resolve) => this.#clock.after(this.#tell(what, error), resolve));
      }
    }
    return false;
  }

  /** @returns when to try again, ms */
  #tell(what: string, error: unknown): number {
    if (error instanceof MillraceError && error.code === 'LOG_UNREADABLE') {
      this.#setObstacle(error.message);
      this.#log.error({ what, code: error.code, error: error.message }, 'this controller cannot lead');
      return UNREADABLE_RETRY_MS;
    }
    this.#log.warn({ what, error: String(error) }, 'the controller could not finish a step; trying again');
    return RETRY_MS;
  }

  #setObstacle(obstacle: string | undefined): void {
    this.#obstacle = obstacle;
    this.#unreadable.set(obstacle === undefined ? 0 : 1);
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof MillraceError && error.retryable;
}
