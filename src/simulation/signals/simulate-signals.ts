import type { Settings } from '../../config/settings.ts';
import type { Work } from '../../core/batching/work-queue.ts';
import { Fifo } from '../../core/fifo.ts';
import type { LedgerSummary, OutcomeCounts } from '../../core/outcome/ledger.ts';
import { poolsOf } from '../../core/policy/fleet-pools.ts';
import { scopedRandom } from '../../core/random/scoped-random.ts';
import type { SeededRandom } from '../../core/random/seeded-random.ts';
import { chooseTarget, type ModelWanted, type TargetWanted } from '../../core/routing/choose.ts';
import { FleetState } from '../../core/routing/fleet-state.ts';
import type { ActivePolicy } from '../../stages/request-router/active-policy.ts';
import type { Arrival } from '../../traffic/arrivals.ts';
import { fasterProfile } from '../fleet/faster-profile.ts';
import type { SimulatedFleet, SimulatedPool } from '../fleet/simulated-fleet.ts';
import { Measurements } from '../report/measurements.ts';
import { PoolMeter } from '../report/pool-meter.ts';
import type { ShadowCandidate } from '../report/shadow-watch.ts';
import type { SimulationReport } from '../report/simulation-report.ts';
import { stepMsOf } from '../report/step.ts';
import { Agenda } from './agenda.ts';
import { RECORDED_FAMILY, type RecordedRequest } from './recorded-requests.ts';
import { SignalShadow } from './signal-shadow.ts';
import { batchKeyOf, type Journey, SignalWorker } from './signal-worker.ts';

export interface SignalSimulation {
  readonly fleet: SimulatedFleet;
  readonly policy: ActivePolicy;
  /** A candidate that decides beside it, and acts on nothing; the requests have their signals by name then. */
  readonly shadow?: ShadowCandidate;
  readonly settings: Settings;
  readonly random: SeededRandom;
  /** In this order, over and over. */
  readonly requests: readonly RecordedRequest[];
  readonly arrivals: Iterator<Arrival>;
  readonly traffic: string;
  readonly durationMs: number;
  readonly drainMs: number;
  readonly budgetMs: number;
}

/** A record goes to the broker and from it: through ingress (a client's own way does not count) and features. */
const HOPS_TO_ROUTER = 3;
const HOPS_BETWEEN = 2;
const MODEL: ModelWanted = {
  family: RECORDED_FAMILY,
  version: undefined,
  variant: 'baseline',
  isPinned: false,
};

/**
 * Routes recorded requests by their signals, without tensors, codecs or a bus: the policy, the choice of a slot, credits, the batch plan and the service
 * times are the code of the whole pipeline; what is between them is a delay. One router; a worker that goes leaves its queue to the next of its slot.
 */
export function simulateSignals(options: SignalSimulation): SimulationReport {
  return new SignalRun(options).run();
}

class SignalRun {
  readonly #options: SignalSimulation;
  readonly #agenda = new Agenda();
  readonly #fleet: FleetState;
  readonly #workers = new Map<string, SignalWorker[]>();
  readonly #meters: ReadonlyMap<string, PoolMeter>;
  readonly #measured: Measurements;
  readonly #targets: readonly TargetWanted[];
  readonly #poolsOf;
  /** By leaf, those that found no credit or no worker. */
  readonly #waiting: readonly Fifo<Journey>[];
  readonly #ties: () => number;
  readonly #shadow: SignalShadow | undefined;
  readonly #outcomes: OutcomeCounts = { scored: 0, degraded: 0, expired: 0, rejected: 0, deadLettered: 0 };
  /** Told that they go; they work off what they have. */
  readonly #leaving = new Set<SignalWorker>();
  /** Under way to another kernel than the leaf names. */
  readonly #degraded = new Set<Journey>();
  #ingress = 0;
  #sequence = 0;
  #beats = 0;

  constructor(options: SignalSimulation) {
    const { settings, fleet, policy, random, durationMs } = options;
    this.#options = options;
    const { statusStaleMs, creditsMax } = settings.router;
    this.#fleet = new FleetState({ statusStaleMs, creditsMax });
    this.#poolsOf = poolsOf(fleet.fleet);
    const stepMs = stepMsOf(durationMs);
    this.#measured = new Measurements(stepMs);
    this.#meters = new Map(fleet.pools.map((pool) => [pool.pool, new PoolMeter(pool, stepMs)]));
    const { leaves } = policy.compiled;
    this.#targets = leaves.map((leaf) => ({ ...leaf.target, fallback: leaf.fallback }));
    this.#waiting = leaves.map(() => new Fifo());
    const ties = random.stream('router-0/router.ties');
    this.#ties = () => ties.next();
    for (const pool of fleet.pools) this.#addPool(pool);
    this.#shadow = this.#shadowOf(options);
  }

  run(): SimulationReport {
    const { durationMs, drainMs } = this.#options;
    const { stepMs } = this.#measured;
    const agenda = this.#agenda;
    this.#heartbeats();
    this.#shadow?.start();
    this.#scheduleNext(0);
    for (let atMs = 0; atMs < durationMs; atMs += stepMs) {
      agenda.runTo(atMs + stepMs);
      this.#measured.stepEnded();
      for (const [pool, meter] of this.#meters) meter.stepEnded(this.#readings(pool));
    }
    const untilMs = durationMs + drainMs;
    while (this.#inFlight() > 0 && agenda.nowMs < untilMs)
      agenda.runTo(Math.min(untilMs, agenda.nowMs + 100));
    return this.#report();
  }

  #shadowOf({ shadow, policy, settings }: SignalSimulation): SignalShadow | undefined {
    if (shadow === undefined) return undefined;
    const { windowMs } = settings;
    const of = { fleet: this.#fleet, poolsOf: this.#poolsOf, agenda: this.#agenda };
    return new SignalShadow({ stable: policy, candidate: shadow, windowMs, ...of });
  }

  #addPool(pool: SimulatedPool): void {
    const { worker } = this.#options.settings;
    const limits = {
      requestsMax: worker.batchRequestsMax,
      candidatesMax: worker.batchCandidatesMax,
      msMax: worker.batchMsMax,
    };
    const profile = fasterProfile(pool.profile, pool.speed);
    const workers = Array.from({ length: pool.slots }, (_, slot) => {
      const random = scopedRandom(this.#options.random, `${pool.pool}-${slot}`).stream('service-time');
      return new SignalWorker({ pool: pool.pool, slot, profile, limits, random });
    });
    this.#workers.set(pool.pool, workers);
    for (const { atMs, slots, noticeMs } of pool.capacity) {
      this.#agenda.at(Math.max(0, atMs - noticeMs), () => {
        // Who is told says good-bye, and works off what it has.
        for (const worker of workers.slice(slots)) this.#fleet.removeWorker(worker.name, this.#agenda.nowMs);
        if (noticeMs > 0) for (const worker of workers.slice(slots)) this.#leaving.add(worker);
      });
      this.#agenda.at(atMs, () => {
        for (const [slot, worker] of workers.entries()) {
          worker.isUp = slot < slots;
          this.#leaving.delete(worker);
          if (worker.isUp) this.#pump(worker);
        }
      });
    }
  }

  #heartbeats(): void {
    const nowMs = this.#agenda.nowMs;
    this.#beats += 1;
    for (const pool of this.#options.fleet.pools) {
      for (const worker of this.#workers.get(pool.pool) ?? []) {
        if (!worker.isUp || this.#leaving.has(worker)) continue;
        this.#fleet.applyStatus(
          {
            pool: pool.pool,
            capacityClass: pool.capacityClass,
            accelerator: pool.accelerator,
            worker: worker.name,
            incarnation: worker.name,
            sequence: this.#beats,
            slots: [worker.slot],
            kernels: Object.keys(pool.profile.kernels),
            memories: Object.keys(pool.profile.memories),
            models: [{ family: RECORDED_FAMILY, version: '1', variant: 'baseline', isPublished: false }],
            speed: worker.speed,
            batchRequests: this.#options.settings.worker.batchRequestsMax,
            queuedPredictedMs: worker.queuedPredictedMs,
          },
          nowMs,
        );
      }
    }
    this.#fleet.sweep(nowMs);
    this.#retry();
    this.#agenda.at(nowMs + this.#options.settings.worker.heartbeatMs, () => this.#heartbeats());
  }

  #scheduleNext(dueMs: number): void {
    const next = this.#options.arrivals.next();
    if (next.done === true) return;
    const atMs = dueMs + next.value.afterMs;
    if (!(atMs < this.#options.durationMs)) return;
    this.#agenda.at(atMs, () => {
      this.#arrive(atMs);
      this.#scheduleNext(atMs);
    });
  }

  #arrive(dueMs: number): void {
    const { requests, policy, budgetMs, fleet } = this.#options;
    const request = requests[this.#ingress % requests.length];
    if (request === undefined) return;
    this.#ingress += 1;
    this.#measured.arrived();
    const leaf = policy.compiled.decide(request.vector.signals, request.vector.context);
    const journey = { request, dueMs, deadlineMs: dueMs + budgetMs, leaf, sequence: 0, arrivedMs: 0 };
    this.#agenda.later(HOPS_TO_ROUTER * fleet.hopMs, () => {
      this.#shadow?.observe(request);
      if (!this.#place(journey)) this.#waiting[leaf]?.push(journey);
    });
  }

  /** False where it must wait. */
  #place(journey: Journey): boolean {
    const { nowMs } = this.#agenda;
    if (journey.deadlineMs <= nowMs) {
      this.#end(journey, 'expired', undefined);
      return true;
    }
    const wanted = this.#targets[journey.leaf];
    if (wanted === undefined) throw new Error(`leaf ${journey.leaf} is not in the policy`);
    const { predictedMs, candidates } = journey.request;
    const choice = chooseTarget(this.#fleet, this.#poolsOf, wanted, MODEL, predictedMs, nowMs, this.#ties);
    if (choice.status !== 'chosen') return false;
    const { slot, degradation } = choice.target;
    this.#sequence += 1;
    journey.sequence = this.#sequence;
    const giveUpAtMs = journey.deadlineMs + this.#options.settings.router.giveUpGraceMs;
    this.#fleet.recordDispatch(slot, {
      sequence: this.#sequence,
      predictedMs,
      dispatchedAtMs: nowMs,
      giveUpAtMs,
    });
    const work = {
      deadlineMs: journey.deadlineMs,
      optional: false,
      batchKey: batchKeyOf(choice.target),
      candidates,
      predictedMs,
      payload: journey,
    };
    const worker = this.#workers.get(slot.pool)?.[slot.partition];
    if (worker === undefined) throw new Error(`${slot.pool} has no slot ${slot.partition}`);
    const isDegraded = degradation !== undefined;
    this.#agenda.later(HOPS_BETWEEN * this.#options.fleet.hopMs, () => {
      journey.arrivedMs = this.#agenda.nowMs;
      if (isDegraded) this.#degraded.add(journey);
      worker.lastSequence = Math.max(worker.lastSequence, journey.sequence);
      worker.push(work);
      this.#pump(worker);
    });
    return true;
  }

  #pump(worker: SignalWorker): void {
    while (worker.isUp && !worker.isBusy) {
      const next = worker.next(this.#agenda.nowMs);
      if (next === undefined) return;
      const { expired, batch, serviceMs } = next;
      if (expired.length > 0) this.#acknowledge(worker, expired);
      for (const { payload } of expired) this.#end(payload, 'expired', worker.pool);
      if (batch.length > 0)
        this.#agenda.at(this.#agenda.nowMs + serviceMs, () => this.#finish(worker, batch, serviceMs));
    }
  }

  #finish(worker: SignalWorker, batch: readonly Work<Journey>[], serviceMs: number): void {
    worker.isBusy = false;
    if (!worker.isUp) {
      // It was killed as it ran: whoever has the slot next begins with it.
      for (const work of batch) worker.push(work);
      return;
    }
    worker.busyMs += serviceMs;
    worker.serviceMs = serviceMs;
    this.#acknowledge(worker, batch);
    for (const { payload } of batch)
      this.#end(payload, this.#degraded.delete(payload) ? 'degraded' : 'scored', worker.pool);
    this.#pump(worker);
  }

  #acknowledge(worker: SignalWorker, ended: readonly Work<Journey>[]): void {
    const { fleet, settings } = this.#options;
    const { nowMs } = this.#agenda;
    const ack = {
      pool: worker.pool,
      slot: worker.slot,
      incarnation: worker.name,
      completed: ended.map(({ payload }) => payload.sequence),
      sojournMs: ended.map(({ payload }) => nowMs - payload.arrivedMs),
      serviceMs: worker.serviceMs,
      lastSequenceSeen: worker.lastSequence,
      queuedPredictedMs: worker.queuedPredictedMs,
      // The only router has all workers for its own: what others sent is not asked for.
      enqueuedPredictedMs: 0,
      batchRequests: settings.worker.batchRequestsMax,
      routers: 1,
    };
    this.#agenda.later(HOPS_BETWEEN * fleet.hopMs + settings.worker.ackCoalesceMs, () => {
      if (this.#fleet.applyAck(ack, this.#agenda.nowMs)) this.#retry();
    });
  }

  #retry(): void {
    for (const waiting of this.#waiting) {
      for (let first = waiting.at(0); first !== undefined; first = waiting.at(0)) {
        if (!this.#place(first)) break;
        waiting.shift();
      }
    }
  }

  #end(journey: Journey, outcome: 'scored' | 'degraded' | 'expired', pool: string | undefined): void {
    this.#outcomes[outcome] += 1;
    const latencyMs = this.#agenda.nowMs + HOPS_BETWEEN * this.#options.fleet.hopMs - journey.dueMs;
    const leaf = this.#options.policy.compiled.leaves[journey.leaf]?.id;
    this.#measured.answered({ outcome, latencyMs, leaf });
    if (pool !== undefined) this.#meters.get(pool)?.answered();
  }

  #inFlight(): number {
    return this.#ingress - this.#outcomes.scored - this.#outcomes.degraded - this.#outcomes.expired;
  }

  #readings(pool: string) {
    return (this.#workers.get(pool) ?? [])
      .filter(({ isUp }) => isUp)
      .map((worker) => ({ life: worker, queued: worker.queued, busyMs: worker.busyMs }));
  }

  #report(): SimulationReport {
    const { random, durationMs, drainMs, fleet, policy, traffic } = this.#options;
    const { digest, name, version } = policy.ref;
    const meters = [...this.#meters.values()];
    const latency = this.#measured.latency();
    const inFlight = this.#inFlight();
    const ledger: LedgerSummary = {
      ingress: this.#ingress,
      outcomes: this.#outcomes,
      inFlight,
      duplicatesVisible: 0,
      duplicatesDropped: 0,
      unknown: 0,
      unreadable: 0,
      latencyMs: { p50: latency.p50Ms, p99: latency.p99Ms },
      balanced: inFlight === 0,
    };
    return {
      ...{ format: 1, simulated: true, seed: random.seed, durationMs, fleet: fleet.fleet.name, traffic },
      policy: { name, version, digest },
      ledger,
      latency,
      leaves: this.#measured.leaves(),
      pools: meters.map((meter) => meter.summary()),
      series: { ...this.#measured.series(), pools: meters.map((meter) => meter.series()) },
      ...(this.#shadow === undefined ? {} : { shadow: this.#shadow.report([...this.#meters.keys()]) }),
      notes: [
        'by signals taken beforehand: no tensors, codecs or bus took part',
        ...(inFlight === 0
          ? []
          : [`${inFlight} requests had no result ${drainMs} ms after the traffic ended`]),
      ],
    };
  }
}
