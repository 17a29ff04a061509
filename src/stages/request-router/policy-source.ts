import { type RouterReport, writeRouterReport } from '../../core/rollout/router-report.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { RandomStream } from '../../ports/random.ts';
import { PointerFollower } from '../pointer-follower.ts';
import { PointerAdoption, type PointerAdoptionOptions } from './pointer-adoption.ts';

export interface PolicySourceOptions extends PointerAdoptionOptions {
  store: ControlStore;
  random: RandomStream;
  /** Name under which this router reports what it applied or refused. */
  member: string;
}

const REPORT_TTL_MS = 10_000;
/** A report is made anew before it is gone. */
export const REPORT_EVERY_MS = 4_000;
/** A store that does not answer holds up nobody's start for longer. */
const START_WAIT_MS = 500;

/**
 * Follows the policy pointer: what it means is up to `PointerAdoption`; here is what is reported of it to the store. A store that is away, empty or
 * older changes nothing.
 */
export class PolicySource {
  readonly #options: PolicySourceOptions;
  readonly #adoption: PointerAdoption;
  readonly #follower: PointerFollower;
  #closed = false;
  /** What was said last; of what an earlier life surely said, the repetition is due at a random moment. */
  #reported: { text: string; atMs: number } | undefined;
  /** Alarms that were raised, so that each is raised once. */
  #alarm = '';

  constructor(options: PolicySourceOptions) {
    this.#options = options;
    this.#adoption = new PointerAdoption(options);
    this.#follower = new PointerFollower({
      ...options,
      take: async (pointer, askedAtMs) => {
        const report = await this.#adoption.take(pointer, askedAtMs);
        if (report !== undefined && !this.#closed) await this.#report(report, pointer);
      },
      unreadable: (error) => this.#refuseUnreadable(error),
    });
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
      this.#follower.startSometime();
      return;
    }
    await new Promise<void>((resolve) => {
      const cancel = clock.after(START_WAIT_MS, resolve);
      void this.#follower.start().then(() => {
        cancel();
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#adoption.close(), this.#follower.close()]);
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
