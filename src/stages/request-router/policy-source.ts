import { MillraceError } from '../../core/errors.ts';
import { type RouterReport, writeRouterReport } from '../../core/rollout/router-report.ts';
import type { Cancel } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { RandomStream } from '../../ports/random.ts';
import { PointerAdoption, type PointerAdoptionOptions } from './pointer-adoption.ts';

export interface PolicySourceOptions extends PointerAdoptionOptions {
  store: ControlStore;
  random: RandomStream;
  /** Name under which this router reports what it applied or refused. */
  member: string;
}

const POLL_MS = 1_000;
/** A poll comes so much earlier or later at random, so that routers that started together do not ask together. */
const POLL_JITTER = 0.2;
const REPORT_TTL_MS = 10_000;
/** A report is made anew before it is gone. */
const REPORT_EVERY_MS = 4_000;
/** A store that does not answer holds up nobody's start for longer. */
const START_WAIT_MS = 500;

/**
 * Follows the policy pointer. A hint is a hint: the pointer is also read each second, give or take 20 %. What it means is up to
 * `PointerAdoption`; here is when the store is read, and what is reported to it. A store that is away, empty or older changes nothing.
 */
export class PolicySource {
  readonly #options: PolicySourceOptions;
  readonly #adoption: PointerAdoption;
  #reading: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #watching = false;
  #unwatch: (() => Promise<void>) | undefined;
  #cancelPoll: Cancel | undefined;
  /** What was said last; of what an earlier life surely said, the repetition is due at a random moment. */
  #reported: { text: string; atMs: number } | undefined;
  /** Alarms that were raised, so that each is raised once. */
  #alarm = '';

  constructor(options: PolicySourceOptions) {
    this.#options = options;
    this.#adoption = new PointerAdoption(options);
  }

  /**
   * Resolves once the last-known-good policies decide, or else the store's, or the store was waited for long enough. With the former at hand
   * the store is asked at some moment of the next second only: of many routers that start together, few ask together.
   */
  async start(): Promise<void> {
    const { clock, random } = this.#options;
    const epoch = await this.#adoption.restore();
    if (this.#closed) return;
    if (epoch !== undefined) {
      const text = writeRouterReport({ status: 'applied', epoch });
      this.#reported = { text, atMs: clock.monotonicMs() - REPORT_EVERY_MS * random.next() };
      this.#pollAfter(POLL_MS * (1 + POLL_JITTER) * random.next());
      return;
    }
    this.#pollAfter(this.#nextPollMs());
    await new Promise<void>((resolve) => {
      const cancel = clock.after(START_WAIT_MS, resolve);
      void this.#ask().then(() => {
        cancel();
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await Promise.all([this.#adoption.close(), this.#unwatch?.()]);
  }

  #nextPollMs(): number {
    return POLL_MS * (1 - POLL_JITTER + 2 * POLL_JITTER * this.#options.random.next());
  }

  #pollAfter(delayMs: number): void {
    this.#cancelPoll = this.#options.clock.after(delayMs, () => {
      void this.#ask();
      this.#pollAfter(this.#nextPollMs());
    });
  }

  /** Sees to it that hints come, and reads. */
  async #ask(): Promise<void> {
    if (!this.#watching) await this.#watch();
    if (!this.#closed) await this.#read();
  }

  async #watch(): Promise<void> {
    const { store, scope, telemetry } = this.#options;
    this.#watching = true;
    // The first one says that the watch stands: whoever asked for it reads right after anyway.
    let isFirst = true;
    const onHint = (): void => {
      if (!isFirst) void this.#read();
      isFirst = false;
    };
    try {
      const unwatch = await store.watch(scope, onHint);
      if (this.#closed) await unwatch();
      else this.#unwatch = unwatch;
    } catch (error) {
      this.#watching = false;
      telemetry.logger.debug(
        { scope, error: String(error) },
        'no hints of the control store yet; polling goes on',
      );
    }
  }

  /** One reading at a time, however many hints come; those that come meanwhile are answered by one more. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#readUntilQuiet();
    return this.#reading;
  }

  async #readUntilQuiet(): Promise<void> {
    do {
      this.#again = false;
      await this.#readOnce();
    } while (this.#again && !this.#closed);
    this.#reading = undefined;
  }

  async #readOnce(): Promise<void> {
    const { store, clock, scope, telemetry } = this.#options;
    try {
      const askedAtMs = clock.monotonicMs();
      const pointer = await store.readPointer(scope);
      if (this.#closed) return;
      const report = await this.#adoption.take(pointer, askedAtMs);
      if (report !== undefined && !this.#closed) await this.#report(report, pointer);
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'STORE_UNAVAILABLE') {
        const what = 'the control store does not answer; the policy in force stays';
        telemetry.logger.debug({ scope, error: error.message }, what);
      } else if (!this.#closed) {
        await this.#refuseUnreadable(error);
      }
    }
  }

  /** The pointer is no pointer; what ran goes on running. */
  async #refuseUnreadable(error: unknown): Promise<void> {
    const reason = error instanceof Error ? error.message : String(error);
    await this.#report({ status: 'refused', epoch: 0, what: 'pointer', reason }, undefined);
  }

  async #report(report: RouterReport, pointer: PolicyPointer | undefined): Promise<void> {
    const { store, clock, scope, member, telemetry } = this.#options;
    if (report.status === 'refused') this.#raise(report, pointer);
    const text = writeRouterReport(report);
    const nowMs = clock.monotonicMs();
    const isSaid =
      this.#reported?.text === text || (this.#reported?.text === '' && report.status === 'applied');
    if (this.#reported !== undefined && isSaid && nowMs - this.#reported.atMs < REPORT_EVERY_MS) return;
    this.#reported = { text, atMs: nowMs };
    try {
      await store.report(scope, member, text, REPORT_TTL_MS);
    } catch (error) {
      this.#reported = undefined;
      telemetry.logger.debug({ scope, error: String(error) }, 'the control store took no report');
    }
  }

  #raise(report: Extract<RouterReport, { status: 'refused' }>, pointer: PolicyPointer | undefined): void {
    const { scope, telemetry } = this.#options;
    const alarm = `${report.epoch} ${report.what} ${report.reason}`;
    if (alarm === this.#alarm) return;
    this.#alarm = alarm;
    telemetry
      .counter({
        name: 'millrace_policy_refusals_total',
        help: 'Policies and pointers that the router refused.',
        labels: ['what'],
      })
      .add(1, { what: report.what });
    const { epoch, what, reason } = report;
    telemetry.logger.error(
      { scope, epoch, what, reason, term: pointer?.term },
      'policy refused; the one in force stays',
    );
  }
}
