import type { RecordCodec } from '../../contracts/codec.ts';
import { carrying } from '../../contracts/headers.ts';
import type { Dispatch, DispatchAck, PoolStatus } from '../../contracts/records.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import { type ErrorCode, MillraceError } from '../../core/errors.ts';
import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { HeavyKeys } from '../../core/rollout/heavy-keys.ts';
import { DEFAULT_LIMITS } from '../../core/rollout/rollout-terms.ts';
import { chooseTarget, type PoolsOf, type TargetChosen } from '../../core/routing/choose.ts';
import { FleetState } from '../../core/routing/fleet-state.ts';
import { missingModels } from '../../core/routing/missing-models.ts';
import type { Clock } from '../../ports/clock.ts';
import type { InboundRecord } from '../../ports/message-bus.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { ResultWriter } from '../results.ts';
import type { ActiveCanary, ActivePolicy } from './active-policy.ts';
import { Arms } from './arms.ts';
import type { Decided } from './deciding-policy.ts';
import { dispatchOf, expiredResult } from './outputs.ts';
import type { RouteJob } from './route-job.ts';
import { RouterCounts } from './router-counts.ts';
import { Shadow, type ShadowWindow } from './shadow.ts';
import { WaitingRequests } from './waiting.ts';
import { modelsNamed, modelWanted, predictedMsOf } from './wanted.ts';
import { workerStatusOf } from './worker-status.ts';

export interface RouterConfig {
  /** Name with incarnation: acknowledgements to an earlier life are not taken for ours. */
  router: string;
  ackPartition: number;
  creditsMax: number;
  statusStaleMs: number;
  /** Dispatches are given up so long after their budget ran out. */
  giveUpGraceMs: number;
  poolsOf: PoolsOf;
  /** See `RolloutLimits`, whose default is taken where it is left out. */
  latencyApartMin?: number;
}

export interface RouterDeps {
  clock: Clock;
  random: RandomStream;
  topics: TopicNames;
  dispatchCodec: RecordCodec<Dispatch>;
  results: ResultWriter;
}

/** The policies in force. */
interface Policies {
  readonly stable: ActivePolicy;
  readonly canary: ActiveCanary | undefined;
}

/**
 * Routes requests: arm → policy leaf → filter, score, pick → credit → dispatch. What finds no credit or no worker waits, with its decision,
 * until an acknowledgement or a heartbeat makes room, or the budget runs out.
 */
export class Router {
  readonly fleet: FleetState;
  readonly counts = new RouterCounts();
  readonly #config: RouterConfig;
  readonly #deps: RouterDeps;
  readonly #waiting: WaitingRequests;
  readonly #random: () => number;
  /** Kept from one policy to the next: the keys are the traffic's. */
  readonly #heavyKeys = new HeavyKeys();
  #policies: Policies;
  #arms: Arms;
  #shadow: Shadow | undefined;
  #onSwap: () => void = () => {};
  #sequence = 0;

  constructor(config: RouterConfig, deps: RouterDeps, stable: ActivePolicy, canary?: ActiveCanary) {
    this.#config = config;
    this.#deps = deps;
    this.#random = () => deps.random.next();
    this.#waiting = new WaitingRequests(deps.clock, () => {
      this.sweep();
      this.#retryWaiting();
    });
    this.fleet = new FleetState({ statusStaleMs: config.statusStaleMs, creditsMax: config.creditsMax });
    this.#policies = { stable, canary };
    this.#arms = new Arms(stable, canary, this.#heavyKeys);
    this.#shadow = this.#shadowOf(canary);
  }

  /** The stable policy in force. */
  get policy(): ActivePolicy {
    return this.#policies.stable;
  }

  /** The policy on its way to live, while it is obeyed. */
  get canary(): ActiveCanary | undefined {
    return this.#policies.canary;
  }

  /** Requests that wait for a credit or a worker. */
  get waiting(): number {
    return this.#waiting.count;
  }

  /** A router that has not heard of any worker since its start would let every request expire. */
  unready(): string | undefined {
    return this.fleet.heardOfWorkers ? undefined : 'no worker has been heard of yet';
  }

  /** Calls back right before every swap, while the counts are still those of the policies before. */
  beforeSwap(callback: () => void): void {
    this.#onSwap = callback;
  }

  /** The swap: requests that wait are decided anew, the most urgent first. */
  setPolicy(stable: ActivePolicy, canary?: ActiveCanary): void {
    this.#onSwap();
    const jobs = this.#waiting.take(() => true).sort((a, b) => a.deadlineMs - b.deadlineMs);
    this.#policies = { stable, canary };
    this.#arms = new Arms(stable, canary, this.#heavyKeys);
    this.#shadow = this.#shadowOf(canary);
    for (const job of jobs) this.#begin(job, undefined);
  }

  onStatus(status: PoolStatus): void {
    this.fleet.applyStatus(workerStatusOf(status), this.#deps.clock.monotonicMs());
    this.#retryWaiting();
  }

  onWorkerGone(worker: string): void {
    this.fleet.removeWorker(worker, this.#deps.clock.monotonicMs());
  }

  /** Those that are there: workers are dealt among them. */
  routersAre(own: string, routers: readonly string[]): void {
    this.fleet.routersAre(own, routers, this.#deps.clock.monotonicMs());
  }

  onAck(ack: DispatchAck): void {
    if (ack.router !== this.#config.router) return;
    if (this.fleet.applyAck(ack, this.#deps.clock.monotonicMs())) this.#retryWaiting();
  }

  route(job: RouteJob): void {
    this.#begin(job, this.#shadow);
  }

  /** Gives up waiting requests whose partition went away. */
  abandon(gone: (record: InboundRecord) => boolean): void {
    for (const job of this.#waiting.take((waiting) => gone(waiting.job.record))) job.abandon();
  }

  /** Why the versions that a policy names cannot serve its leaves as the fleet is now; undefined where they can. */
  unservable({ leaves, document }: CompiledPolicy): string | undefined {
    const named = leaves.map((leaf) => ({
      target: { ...leaf.target, fallback: leaf.fallback },
      models: modelsNamed(document, leaf),
    }));
    const missing = missingModels(this.fleet, this.#config.poolsOf, named, this.#deps.clock.monotonicMs());
    return missing.length === 0 ? undefined : missing.join('; ');
  }

  /** Gives up dispatches that nobody can be waiting for any more. */
  sweep(): void {
    this.fleet.sweep(this.#deps.clock.monotonicMs());
  }

  /** What the candidate in shadow would have done since the last call; undefined where none is. */
  takeShadow(): ShadowWindow | undefined {
    return this.#shadow?.take();
  }

  close(): void {
    this.#waiting.close();
  }

  #shadowOf(canary: ActiveCanary | undefined): Shadow | undefined {
    const { stable, candidate } = this.#arms;
    if (canary?.mode !== 'shadow' || candidate === undefined) return undefined;
    return new Shadow(stable, candidate, {
      fleet: this.fleet,
      poolsOf: this.#config.poolsOf,
      clock: this.#deps.clock,
      latencyApartMin: this.#config.latencyApartMin ?? DEFAULT_LIMITS.latencyApartMin,
    });
  }

  #begin(job: RouteJob, shadow: Shadow | undefined): void {
    let decided: Decided;
    try {
      decided = this.#arms.decide(job.request);
    } catch (error) {
      this.#giveUp(job, undefined, error);
      return;
    }
    shadow?.observe(job.request, decided);
    if (this.#attempt(job, decided)) return;
    this.counts.stalls += 1;
    this.#waiting.add({ job, decided });
  }

  #retryWaiting(): void {
    if (!this.#waiting.isEmpty) this.#waiting.retry(({ job, decided }) => this.#attempt(job, decided));
  }

  /**
   * Dispatches the request, or ends it; false when it must wait. It may be called for a request that waited, by whatever woke it up: so what
   * cannot be dispatched at all ends here, as a dead letter, and nobody else is disturbed.
   */
  #attempt(job: RouteJob, decided: Decided): boolean {
    try {
      return this.#place(job, decided);
    } catch (error) {
      this.#giveUp(job, decided, error);
      return true;
    }
  }

  #giveUp(job: RouteJob, decided: Decided | undefined, error: unknown): void {
    const code: ErrorCode = error instanceof MillraceError ? error.code : 'POISON';
    if (decided === undefined) this.counts.undecided(code);
    else this.counts.ended(decided, 'DEAD_LETTERED', code);
    job.deadLetter(code, error instanceof Error ? error.message : String(error));
  }

  #place(job: RouteJob, decided: Decided): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    if (job.deadlineMs <= nowMs) {
      this.#expire(job, decided, nowMs);
      return true;
    }
    const leaf = decided.policy.leafAt(decided.leaf);
    const predictedMs = predictedMsOf(job.request);
    const choice = chooseTarget(
      this.fleet,
      this.#config.poolsOf,
      decided.policy.targetAt(decided.leaf),
      modelWanted(job.request, decided.policy.document, leaf),
      predictedMs,
      nowMs,
      this.#random,
    );
    switch (choice.status) {
      case 'chosen':
        this.#dispatch(job, decided, choice.target, predictedMs, nowMs);
        return true;
      case 'no-credit':
      case 'no-worker':
        return false;
      default:
        choice satisfies never;
        return false;
    }
  }

  #dispatch(job: RouteJob, decided: Decided, target: TargetChosen, predictedMs: number, nowMs: number): void {
    const { router, ackPartition, giveUpGraceMs } = this.#config;
    const { slot } = target;
    const sequence = this.#sequence + 1;
    const shadowVersion = this.#shadow?.versionFor(job.request, target) ?? null;
    const stamp = { router, ackPartition, sequence, predictedMs, nowMs, shadowVersion };
    const dispatch = dispatchOf(job, decided, target, stamp);
    const { dispatchCodec } = this.#deps;
    const value = dispatchCodec.encode(dispatch);
    this.#sequence = sequence;
    this.fleet.recordDispatch(slot, {
      sequence,
      predictedMs,
      dispatchedAtMs: nowMs,
      giveUpAtMs: job.deadlineMs + giveUpGraceMs,
    });
    this.counts.dispatched(decided, dispatch.policy.leaf, slot.pool);
    const topic = this.#deps.topics.dispatch(slot.pool);
    const key = Buffer.from(dispatch.requestId);
    const headers = carrying(dispatchCodec.headers, dispatch);
    job.finish([{ topic, partition: slot.partition, key, value, headers }]);
  }

  #expire(job: RouteJob, decided: Decided, nowMs: number): void {
    this.counts.ended(decided, 'EXPIRED', 'BUDGET_EXHAUSTED');
    job.finish([this.#deps.results.record(expiredResult(job, nowMs), job.request.resultPartition)]);
  }
}
