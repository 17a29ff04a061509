import { makeRouterWindow } from '../../contracts/records.ts';
import type { PoolsOf } from '../../core/routing/choose.ts';
import type { FleetState } from '../../core/routing/fleet-state.ts';
import type { ActivePolicy } from '../../stages/request-router/active-policy.ts';
import { DecidingPolicy } from '../../stages/request-router/deciding-policy.ts';
import { Shadow } from '../../stages/request-router/shadow.ts';
import type { ShadowReport } from '../report/shadow-report.ts';
import { type ShadowCandidate, ShadowWatch } from '../report/shadow-watch.ts';
import type { Agenda } from './agenda.ts';
import type { RecordedRequest } from './recorded-requests.ts';

export interface SignalShadowOptions {
  readonly stable: ActivePolicy;
  readonly candidate: ShadowCandidate;
  readonly fleet: FleetState;
  readonly poolsOf: PoolsOf;
  readonly agenda: Agenda;
  readonly windowMs: number;
}

/** The shadow of the live router, on recorded requests: its windows go to the watch as they are, not through a topic. */
export class SignalShadow {
  readonly #options: SignalShadowOptions;
  readonly #stable: DecidingPolicy;
  readonly #shadow: Shadow;
  readonly #watch: ShadowWatch;
  #sequence = 0;
  #startedMs = 0;

  constructor(options: SignalShadowOptions) {
    const { stable, candidate, fleet, poolsOf, agenda } = options;
    this.#options = options;
    this.#stable = new DecidingPolicy(stable);
    this.#shadow = new Shadow(this.#stable, new DecidingPolicy(candidate.policy), {
      fleet,
      poolsOf,
      clock: { monotonicMs: () => agenda.nowMs },
      latencyApartMin: candidate.rollout.limits.latencyApartMin,
    });
    this.#watch = new ShadowWatch(candidate, agenda.nowMs);
  }

  /** Windows and looks, from now on. */
  start(): void {
    const { agenda, windowMs, candidate } = this.#options;
    every(agenda, windowMs, () => this.#closeWindow());
    every(agenda, candidate.rollout.lookMs, () => this.#watch.look(agenda.nowMs));
  }

  observe({ byName }: RecordedRequest): void {
    if (byName === undefined) throw new Error('a shadow needs the signals by their names');
    // The shadow takes the signals over from whoever decided the request just before.
    this.#shadow.observe(byName, { policy: this.#stable, leaf: this.#stable.decide(byName) });
  }

  /** With what the windows and looks had not yet. */
  report(pools: readonly string[]): ShadowReport {
    this.#closeWindow();
    this.#watch.look(this.#options.agenda.nowMs);
    return this.#watch.report(pools);
  }

  #closeWindow(): void {
    const { stable, candidate, agenda } = this.#options;
    const windowMs = agenda.nowMs - this.#startedMs;
    this.#startedMs = agenda.nowMs;
    this.#sequence += 1;
    this.#watch.take(
      makeRouterWindow({
        router: 'router-0',
        sequence: this.#sequence,
        windowStartMs: agenda.nowMs - windowMs,
        windowMs,
        policyDigest: stable.ref.digest,
        candidateDigest: candidate.policy.ref.digest,
        ...this.#shadow.take(),
      }),
    );
  }
}

function every(agenda: Agenda, periodMs: number, call: () => void): void {
  agenda.at(agenda.nowMs + periodMs, () => {
    call();
    every(agenda, periodMs, call);
  });
}
