import { makeRouterWindow, type RouterWindow } from '../../contracts/records.ts';
import { produceAside, type StageDeps } from '../stage.ts';
import type { Router } from './router.ts';

/**
 * Windows that wait for the one before them to be stored. Only swaps close any while the broker is away, and few do: what is decided anew goes through
 * the broker. One beyond that is left out, so that nothing of it is counted for the next policy; its number is missing then.
 */
const CLOSED_MAX = 64;

/** Closes the router's windows and sends them, one after another. A window never spans two policies: a swap closes it. */
export class RouterWindows {
  readonly #name: string;
  readonly #deps: StageDeps;
  readonly #router: Router;
  readonly #publish: (taken: { stalls: number; pools: Record<string, number> }) => void;
  readonly #closed: RouterWindow[] = [];
  #sequence = 0;
  #startedMs: number;
  #storing = false;

  /** @param name of the router, with its incarnation */
  constructor(name: string, deps: StageDeps, router: Router) {
    this.#name = name;
    this.#deps = deps;
    this.#router = router;
    this.#publish = openMetrics(deps, router);
    this.#startedMs = deps.clock.monotonicMs();
    router.beforeSwap(() => {
      this.#close();
      this.#send();
    });
  }

  /** At the end of each window. */
  tick(): void {
    this.#router.sweep();
    // While the broker is away the window stays open, so that windows do not pile up.
    if (this.#storing) return;
    this.#close();
    this.#send();
  }

  #close(): void {
    const { clock } = this.#deps;
    const { policy, canary, counts } = this.#router;
    const nowMs = clock.monotonicMs();
    const windowMs = nowMs - this.#startedMs;
    this.#startedMs = nowMs;
    const { stalls, ...taken } = counts.take();
    this.#publish({ stalls, pools: taken.pools });
    this.#sequence += 1;
    const window = makeRouterWindow({
      router: this.#name,
      sequence: this.#sequence,
      windowStartMs: clock.wallMs() - windowMs,
      windowMs,
      policyDigest: policy.ref.digest,
      policyEpoch: policy.epoch,
      candidateDigest: canary?.policy.ref.digest,
      ...taken,
      creditStalls: stalls,
      ...this.#router.takeShadow(),
    });
    if (this.#closed.length < CLOSED_MAX) this.#closed.push(window);
  }

  #send(): void {
    if (this.#storing) return;
    const window = this.#closed.shift();
    if (window === undefined) return;
    const { topics, codecs } = this.#deps;
    const codec = codecs.for('RouterWindow');
    this.#storing = true;
    void produceAside(this.#deps, topics.fixed('routing-metrics'), () => ({
      partition: 0,
      key: Buffer.from(this.#name),
      value: codec.encode(window),
      headers: codec.headers,
    })).then(() => {
      this.#storing = false;
      this.#send();
    });
  }
}

function openMetrics(
  { telemetry }: StageDeps,
  router: Router,
): (taken: { stalls: number; pools: Record<string, number> }) => void {
  const waiting = telemetry.gauge({
    name: 'millrace_router_waiting_requests',
    help: 'Requests that wait for a credit or a worker.',
  });
  const dispatched = telemetry.counter({
    name: 'millrace_dispatched_total',
    help: 'Dispatches by pool.',
    labels: ['pool'],
  });
  const stalls = telemetry.counter({
    name: 'millrace_credit_stalls_total',
    help: 'Decisions that found no credit or no worker at once.',
  });
  const epoch = telemetry.gauge({
    name: 'millrace_policy_epoch',
    help: 'Epoch of the policy in force.',
  });
  return (taken) => {
    waiting.set(router.waiting);
    epoch.set(router.policy.epoch);
    stalls.add(taken.stalls);
    for (const [pool, count] of Object.entries(taken.pools)) dispatched.add(count, { pool });
  };
}
