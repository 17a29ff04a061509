import type { SeededRandom } from '../../core/random/seeded-random.ts';
import { type Draw, drawsOf, normalDraws } from '../engine/draws.ts';
import { EventQueue } from '../engine/event-queue.ts';
import { arrivalTimes, type NextArrival } from './arrival-times.ts';
import type { Chooser, CreateChooser, Seat } from './chooser.ts';
import { Heartbeats } from './heartbeats.ts';
import { LatencyBins } from './latency-bins.ts';
import { ProbeDesk } from './probe-desk.ts';
import { NONE, RequestTable } from './request-table.ts';
import { arrivalRate, type Change, checkScenario, type RoutingScenario } from './scenario.ts';
import { WorkerTable } from './worker-table.ts';

export interface RoutingReport {
  /** Requests that arrived after the warm-up. Every one is completed or lost at the end. */
  readonly arrived: number;
  readonly completed: number;
  /** Held by a worker that died, or under way to it. */
  readonly lost: number;
  /** From arrival at the router to the end at the worker, ms; of those completed. */
  readonly latency: LatencyBins;
  /** Busy time of each worker as a share of the time in which requests arrived, warm-up and all. */
  readonly utilisation: readonly number[];
  readonly events: number;
  /** Most requests under way at once. */
  readonly inFlightMax: number;
}

/** What an event means; its subject follows in the higher bits. */
const EVENT = {
  arrival: 0,
  takenIn: 1,
  end: 2,
  acknowledged: 3,
  beat: 4,
  heard: 5,
  change: 6,
  told: 7,
  probe: 8,
  probed: 9,
} as const;
const SUBJECT_BITS = 4;
const KIND_MASK = (1 << SUBJECT_BITS) - 1;

/**
 * Requests through routers to workers and back, in virtual time: the queueing of a pipeline and the information that its routers have, and
 * nothing else of it. The same seed gives the same report, and every chooser the same requests at the same times.
 *
 * @throws RangeError where the scenario cannot be simulated
 */
export function runRouting(
  scenario: RoutingScenario,
  createChooser: CreateChooser,
  random: SeededRandom,
): RoutingReport {
  checkScenario(scenario);
  return new RoutingRun(scenario, createChooser, random).run();
}

class RoutingRun {
  readonly #scenario: RoutingScenario;
  readonly #queue = new EventQueue();
  readonly #requests = new RequestTable();
  readonly #workers: WorkerTable;
  readonly #heartbeats: Heartbeats;
  readonly #probes: ProbeDesk;
  readonly #latency = new LatencyBins();
  /** Pool, then router. */
  readonly #choosers: readonly Chooser[];
  readonly #poolSize: number;
  /** What routers believe of the workers. */
  readonly #isMember: boolean[];
  #routers: number[];
  readonly #sequences: Float64Array;
  /** When the last dispatch from a router to a worker arrives, and the last acknowledgement back: partitions keep their order. */
  readonly #lastTakenInMs: Float64Array;
  readonly #lastHeardMs: Float64Array;

  readonly #nextArrival: NextArrival;
  readonly #work: Draw;
  readonly #prediction: Draw;
  readonly #straggling: Draw;
  readonly #routerOf: Draw;
  readonly #poolOf: Draw;
  readonly #dispatchMs: Draw;
  readonly #acknowledgementMs: Draw;
  readonly #heartbeatMs: Draw;
  readonly #probeMs: Draw;
  readonly #cumulatedShares: Float64Array;
  #sharesTotal = 0;

  #choosingWorkMs = 0;
  #arrived = 0;
  #completed = 0;
  #lost = 0;
  #events = 0;
  #inFlightMax = 0;
  readonly #end = { sequence: 0, sojournMs: 0, busyMs: 0 };
  readonly #snapshot = { takenAtMs: 0, queuedMs: 0, queuedRequests: 0, lastSequenceSeen: -1, enqueuedMs: 0 };

  constructor(scenario: RoutingScenario, createChooser: CreateChooser, random: SeededRandom) {
    const { routers, speeds, pools } = scenario;
    this.#scenario = scenario;
    this.#poolSize = speeds.length / pools;
    this.#workers = new WorkerTable(speeds, routers, this.#requests);
    this.#heartbeats = new Heartbeats(routers);
    this.#probes = new ProbeDesk(speeds.length);
    this.#routers = Array.from({ length: routers }, (_, router) => router);
    this.#sequences = new Float64Array(routers);
    this.#lastTakenInMs = new Float64Array(speeds.length * routers);
    this.#lastHeardMs = new Float64Array(speeds.length * routers);
    this.#nextArrival = arrivalTimes(scenario.arrivals, arrivalRate(scenario), random.stream('arrivals'));
    this.#work = drawsOf(scenario.work, random.stream('work'));
    this.#prediction = normalDraws(random.stream('prediction'));
    this.#straggling = random.stream('stragglers').next;
    this.#routerOf = random.stream('routers').next;
    this.#poolOf = random.stream('pools').next;
    this.#dispatchMs = drawsOf(scenario.dispatchMs, random.stream('dispatch'));
    this.#acknowledgementMs = drawsOf(scenario.acknowledgementMs, random.stream('acknowledgement'));
    this.#heartbeatMs = drawsOf(scenario.acknowledgementMs, random.stream('heartbeats'));
    this.#probeMs = drawsOf(scenario.dispatchMs, random.stream('probes'));
    this.#cumulatedShares = new Float64Array(routers);
    for (const change of scenario.changes)
      if (change.kind === 'join') this.#workers.isLive[change.worker] = false;
    this.#isMember = [...this.#workers.isLive];
    this.#choosers = Array.from({ length: pools * routers }, (_, place) =>
      createChooser(this.#seat(place, random)),
    );
  }

  run(): RoutingReport {
    this.#begin();
    const { endMs } = this.#scenario;
    while (this.#queue.size > 0) {
      const event = this.#queue.take();
      this.#events += 1;
      this.#happen(event & KIND_MASK, event >>> SUBJECT_BITS, this.#queue.nowMs);
    }
    return {
      arrived: this.#arrived,
      completed: this.#completed,
      lost: this.#lost,
      latency: this.#latency,
      utilisation: Array.from(this.#workers.busyMs, (busyMs) => busyMs / endMs),
      events: this.#events,
      inFlightMax: this.#inFlightMax,
    };
  }

  #seat(place: number, random: SeededRandom): Seat {
    const { routers, speeds } = this.#scenario;
    const router = place % routers;
    const pool = (place - router) / routers;
    const first = pool * this.#poolSize;
    return {
      router,
      speeds: speeds.slice(first, first + this.#poolSize),
      random: random.stream(`chooser ${pool}.${router}`),
      probe: (worker) => this.#sendProbe(router, first + worker),
      truth: {
        workMs: () => this.#choosingWorkMs,
        backlogMs: (worker) => this.#workers.backlogMs(first + worker, this.#queue.nowMs),
        speed: (worker) => this.#workers.speed[first + worker] ?? 1,
      },
    };
  }

  #begin(): void {
    this.#share();
    for (let pool = 0; pool < this.#scenario.pools; pool++) this.#tellMembers(pool);
    const { speeds, statusPeriodMs, changes } = this.#scenario;
    for (let worker = 0; worker < speeds.length; worker++)
      this.#schedule((statusPeriodMs * (worker + 1)) / speeds.length, EVENT.beat, worker);
    changes.forEach((change, number) => {
      this.#schedule(change.atMs, EVENT.change, number);
    });
    this.#scheduleArrival(0);
  }

  #schedule(dueMs: number, kind: number, subject: number): void {
    this.#queue.schedule(dueMs, (subject << SUBJECT_BITS) | kind);
  }

  #happen(kind: number, subject: number, nowMs: number): void {
    switch (kind) {
      case EVENT.arrival:
        this.#arrive(nowMs);
        break;
      case EVENT.takenIn:
        this.#takeIn(subject, nowMs);
        break;
      case EVENT.end:
        this.#endOf(subject, nowMs);
        break;
      case EVENT.acknowledged:
        this.#acknowledge(subject, nowMs);
        break;
      case EVENT.beat:
        this.#beat(subject, nowMs);
        break;
      case EVENT.heard:
        this.#hear(subject, nowMs);
        break;
      case EVENT.change:
        this.#change(subject, nowMs);
        break;
      case EVENT.told:
        this.#tell(subject);
        break;
      case EVENT.probe:
        this.#takeProbe(subject, nowMs);
        break;
      case EVENT.probed:
        this.#answerProbe(subject, nowMs);
        break;
    }
  }

  // Requests

  #scheduleArrival(afterMs: number): void {
    const atMs = this.#nextArrival(afterMs);
    if (atMs <= this.#scenario.endMs) this.#schedule(atMs, EVENT.arrival, 0);
  }

  /** Every draw is made whatever is chosen, so that all choosers meet the same requests. */
  #arrive(nowMs: number): void {
    const { stragglers, predictionSigma, pools, warmUpMs } = this.#scenario;
    const requests = this.#requests;
    const request = requests.take();
    if (requests.count > this.#inFlightMax) this.#inFlightMax = requests.count;
    const usualMs = this.#work();
    const workMs = this.#straggling() < stragglers.share ? usualMs * stragglers.factor : usualMs;
    const predictedMs =
      predictionSigma === 0 ? usualMs : usualMs * Math.exp(predictionSigma * this.#prediction());
    const pool = pools === 1 ? 0 : Math.floor(this.#poolOf() * pools);
    const router = this.#chooseRouter();
    if (nowMs >= warmUpMs) this.#arrived += 1;
    requests.arrivedMs[request] = nowMs;
    requests.workMs[request] = workMs;
    requests.predictedMs[request] = predictedMs;
    requests.router[request] = router;
    this.#choosingWorkMs = workMs;
    const chooser = this.#chooser(pool, router);
    const chosen = chooser.choose(predictedMs, nowMs);
    if (!(chosen >= 0 && chosen < this.#poolSize))
      throw new RangeError(`a chooser chose worker ${chosen} of ${this.#poolSize}`);
    this.#dispatch(request, pool * this.#poolSize + chosen, chooser, chosen, nowMs);
    this.#scheduleArrival(nowMs);
  }

  #dispatch(request: number, worker: number, chooser: Chooser, chosen: number, nowMs: number): void {
    const requests = this.#requests;
    const router = requests.router[request] ?? 0;
    const sequence = this.#sequences[router] ?? 0;
    this.#sequences[router] = sequence + 1;
    requests.worker[request] = worker;
    requests.sequence[request] = sequence;
    this.#workers.dispatched(worker, requests.workMs[request] ?? 0);
    const pair = worker * this.#scenario.routers + router;
    const takenInMs = Math.max(nowMs + this.#dispatchMs(), this.#lastTakenInMs[pair] ?? 0);
    this.#lastTakenInMs[pair] = takenInMs;
    this.#schedule(takenInMs, EVENT.takenIn, request);
    chooser.dispatched?.(chosen, sequence, requests.predictedMs[request] ?? 0, nowMs);
  }

  #takeIn(request: number, nowMs: number): void {
    const worker = this.#requests.worker[request] ?? 0;
    if (this.#isDead(worker)) {
      this.#lose(request);
      return;
    }
    this.#workers.takeIn(request, nowMs);
    if (this.#workers.running(worker) === NONE) this.#start(worker, nowMs);
  }

  #start(worker: number, nowMs: number): void {
    const serviceMs = this.#workers.start(worker, nowMs);
    if (!Number.isNaN(serviceMs)) this.#schedule(nowMs + serviceMs, EVENT.end, worker);
  }

  #endOf(worker: number, nowMs: number): void {
    // A worker that died ends nothing: what it ran is lost already.
    if (this.#workers.running(worker) === NONE) return;
    const requests = this.#requests;
    const request = this.#workers.end(worker, nowMs);
    this.#start(worker, nowMs);
    const arrivedMs = requests.arrivedMs[request] ?? 0;
    if (arrivedMs >= this.#scenario.warmUpMs) {
      this.#latency.add(nowMs - arrivedMs);
      this.#completed += 1;
    }
    if (this.#probes.areUsed)
      this.#probes.add(worker, requests.beside[request] ?? 0, nowMs - (requests.takenInMs[request] ?? 0));
    requests.endedMs[request] = nowMs;
    requests.queuedMs[request] = this.#workers.queuedMs(worker, nowMs);
    requests.queuedRequests[request] = this.#workers.inFlight(worker);
    requests.lastSequenceSeen[request] = this.#workers.lastSequenceSeen(
      worker,
      requests.router[request] ?? 0,
    );
    requests.enqueuedMs[request] = this.#workers.enqueuedMs(worker);
    this.#sendBack(request, worker, nowMs);
  }

  #sendBack(request: number, worker: number, nowMs: number): void {
    const pair = worker * this.#scenario.routers + (this.#requests.router[request] ?? 0);
    const heardMs = Math.max(nowMs + this.#acknowledgementMs(), this.#lastHeardMs[pair] ?? 0);
    this.#lastHeardMs[pair] = heardMs;
    this.#schedule(heardMs, EVENT.acknowledged, request);
  }

  #acknowledge(request: number, nowMs: number): void {
    const requests = this.#requests;
    const worker = requests.worker[request] ?? 0;
    const endedMs = requests.endedMs[request] ?? 0;
    const end = this.#end;
    end.sequence = requests.sequence[request] ?? 0;
    end.busyMs = requests.busyMs[request] ?? 0;
    end.sojournMs = endedMs - (requests.takenInMs[request] ?? 0);
    const snapshot = this.#snapshot;
    snapshot.takenAtMs = endedMs;
    snapshot.queuedMs = requests.queuedMs[request] ?? 0;
    snapshot.queuedRequests = requests.queuedRequests[request] ?? 0;
    snapshot.lastSequenceSeen = requests.lastSequenceSeen[request] ?? -1;
    snapshot.enqueuedMs = requests.enqueuedMs[request] ?? 0;
    const place = worker % this.#poolSize;
    const chooser = this.#chooser((worker - place) / this.#poolSize, requests.router[request] ?? 0);
    chooser.acknowledged?.(place, end, snapshot, nowMs);
    requests.release(request);
  }

  #lose(request: number): void {
    if ((this.#requests.arrivedMs[request] ?? 0) >= this.#scenario.warmUpMs) this.#lost += 1;
    this.#requests.release(request);
  }

  // Heartbeats and probes

  #beat(worker: number, nowMs: number): void {
    const { statusPeriodMs, endMs } = this.#scenario;
    if (nowMs + statusPeriodMs <= endMs) this.#schedule(nowMs + statusPeriodMs, EVENT.beat, worker);
    if (this.#isDead(worker) || this.#isMember[worker] !== true) return;
    const beat = this.#heartbeats.send(this.#workers, worker, nowMs);
    this.#schedule(nowMs + this.#heartbeatMs(), EVENT.heard, beat);
  }

  #hear(number: number, nowMs: number): void {
    const beat = this.#heartbeats.at(number);
    const place = beat.worker % this.#poolSize;
    const pool = (beat.worker - place) / this.#poolSize;
    const snapshot = this.#snapshot;
    snapshot.takenAtMs = beat.takenAtMs;
    snapshot.queuedMs = beat.queuedMs;
    snapshot.queuedRequests = beat.queuedRequests;
    snapshot.enqueuedMs = beat.enqueuedMs;
    for (const router of this.#routers) {
      snapshot.lastSequenceSeen = beat.lastSequenceSeen[router] ?? -1;
      this.#chooser(pool, router).heard?.(place, snapshot, nowMs);
    }
    this.#heartbeats.release(number);
  }

  #sendProbe(router: number, worker: number): void {
    const probe = this.#probes.take(router, worker);
    this.#schedule(this.#queue.nowMs + this.#probeMs(), EVENT.probe, probe);
  }

  #takeProbe(probe: number, nowMs: number): void {
    const worker = this.#probes.workerOf(probe);
    // Nothing answers for a dead worker.
    if (this.#isDead(worker)) {
      this.#probes.release(probe);
      return;
    }
    this.#probes.read(probe, this.#workers.inFlight(worker));
    this.#schedule(nowMs + this.#probeMs(), EVENT.probed, probe);
  }

  #answerProbe(probe: number, nowMs: number): void {
    const worker = this.#probes.workerOf(probe);
    const place = worker % this.#poolSize;
    const chooser = this.#chooser((worker - place) / this.#poolSize, this.#probes.routerOf(probe));
    chooser.probed?.(place, this.#probes.readingOf(probe), nowMs);
    this.#probes.release(probe);
  }

  // Who is there

  #change(number: number, nowMs: number): void {
    const change = this.#changeAt(number);
    switch (change.kind) {
      case 'slow':
        this.#workers.speed[change.worker] = (this.#workers.speed[change.worker] ?? 1) * change.factor;
        break;
      case 'join':
        this.#workers.isLive[change.worker] = true;
        this.#tell(number);
        break;
      case 'die':
        this.#workers.isLive[change.worker] = false;
        this.#workers.loseAll(change.worker, (request) => this.#lose(request));
        this.#schedule(nowMs + change.toldAfterMs, EVENT.told, number);
        break;
      case 'drain':
      case 'router-dies':
        this.#tell(number);
        break;
    }
  }

  #tell(number: number): void {
    const change = this.#changeAt(number);
    if (change.kind === 'router-dies') {
      this.#routers = this.#routers.filter((router) => router !== change.router);
      this.#share();
      for (let pool = 0; pool < this.#scenario.pools; pool++) this.#tellMembers(pool);
      return;
    }
    this.#isMember[change.worker] = change.kind === 'join';
    this.#tellMembers(Math.floor(change.worker / this.#poolSize));
  }

  #tellMembers(pool: number): void {
    const first = pool * this.#poolSize;
    const members = {
      isLive: this.#isMember.slice(first, first + this.#poolSize),
      routers: [...this.#routers],
    };
    for (const router of this.#routers)
      this.#chooser(pool, router).membersChanged?.(members, this.#queue.nowMs);
  }

  #share(): void {
    const { routerShares } = this.#scenario;
    let sum = 0;
    this.#cumulatedShares.fill(Number.POSITIVE_INFINITY);
    this.#routers.forEach((router, place) => {
      sum += routerShares?.[router] ?? 1;
      this.#cumulatedShares[place] = sum;
    });
    this.#sharesTotal = sum;
  }

  #chooseRouter(): number {
    const drawn = this.#routerOf() * this.#sharesTotal;
    let place = 0;
    while ((this.#cumulatedShares[place] ?? Number.POSITIVE_INFINITY) <= drawn) place += 1;
    return this.#routers[place] ?? 0;
  }

  #chooser(pool: number, router: number): Chooser {
    const chooser = this.#choosers[pool * this.#scenario.routers + router];
    if (chooser === undefined) throw new RangeError(`there is no router ${router} of pool ${pool}`);
    return chooser;
  }

  #changeAt(number: number): Change {
    const change = this.#scenario.changes[number];
    if (change === undefined) throw new RangeError(`there is no change ${number}`);
    return change;
  }

  #isDead(worker: number): boolean {
    return this.#workers.isLive[worker] !== true;
  }
}
