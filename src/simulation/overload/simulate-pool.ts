import type { SeededRandom } from '../../core/random/seeded-random.ts';
import { EventQueue } from '../engine/event-queue.ts';
import { PoolBook } from './pool-book.ts';
import type { Completion, CreatePolicy, PoolPolicy } from './pool-policy.ts';
import { type Attempt, costOf, type PoolRequest } from './pool-request.ts';
import { PoolTraffic, type PoolTrafficSettings } from './pool-traffic.ts';

export interface PoolScenario extends PoolTrafficSettings {
  readonly slaMs: number;
  readonly endMs: number;
  /** How often a client sends a request again that was refused, dropped or late. */
  readonly retries: number;
}

/** Clients come back after a random part of this, ms. */
const RETRY_WITHIN_MS = 20;

const ARRIVAL = 0;
const TICK = 1;
const COMPLETION = 2;
const RETRY = 3;
const TIMEOUT = 4;
const KINDS = 5;

/**
 * A pool of servers behind one policy, in virtual time: requests arrive, clients give up at the end of the SLA and send again, and the pool does not
 * know who gave up. A server runs one request at a time, for its predicted time × noise.
 */
export function simulatePool(scenario: PoolScenario, create: CreatePolicy, random: SeededRandom): PoolBook {
  const pool = new Pool(scenario, create, random);
  pool.run();
  return pool.book;
}

interface Running extends Completion {
  steps: number;
}

class Pool {
  readonly book = new PoolBook();
  readonly #scenario: PoolScenario;
  readonly #events = new EventQueue();
  readonly #traffic: PoolTraffic;
  readonly #jitter: { next(): number };
  readonly #policy: PoolPolicy;
  readonly #idle: number[];
  readonly #running: (Running | undefined)[];
  /** What waits for an event of its own: a retry or a time-out. */
  readonly #awaited: (Attempt | undefined)[] = [];
  readonly #freePlaces: number[] = [];
  #next: PoolRequest;

  constructor(scenario: PoolScenario, create: CreatePolicy, random: SeededRandom) {
    const { servers, slaMs } = scenario;
    this.#scenario = scenario;
    this.#traffic = new PoolTraffic(scenario, random);
    this.#jitter = random.stream('retries');
    this.#policy = create({ servers, slaMs, onDrop: (attempt) => this.#failed(attempt) });
    this.#idle = Array.from({ length: servers }, (_, server) => server);
    this.#running = this.#idle.map(() => undefined);
    this.#next = this.#traffic.next();
  }

  run(): void {
    const events = this.#events;
    events.schedule(this.#next.sentMs, ARRIVAL);
    events.schedule(this.#policy.tickMs, TICK);
    while (events.nextMs <= this.#scenario.endMs) {
      const event = events.take();
      this.#handle(event % KINDS, Math.floor(event / KINDS));
      this.#serve();
    }
  }

  #handle(kind: number, index: number): void {
    switch (kind) {
      case ARRIVAL:
        this.#arrive();
        return;
      case TICK:
        this.#tick();
        return;
      case COMPLETION:
        this.#complete(index);
        return;
      case RETRY:
        this.#send(this.#release(index).request);
        return;
      case TIMEOUT:
        this.#failed(this.#release(index));
        return;
    }
  }

  #arrive(): void {
    const request = this.#next;
    this.book.sent(request);
    this.#send(request);
    this.#next = this.#traffic.next();
    this.#events.schedule(this.#next.sentMs, ARRIVAL);
  }

  #tick(): void {
    const nowMs = this.#events.nowMs;
    this.#policy.tick(nowMs);
    this.book.limit(this.#policy.limit(), nowMs);
    this.#events.schedule(nowMs + this.#policy.tickMs, TICK);
  }

  #send(request: PoolRequest): void {
    const nowMs = this.#events.nowMs;
    request.attempts += 1;
    const { base, extras } = request;
    const deadlineMs = nowMs + this.#scenario.slaMs;
    const attempt: Attempt = {
      request,
      arrivedMs: nowMs,
      deadlineMs,
      priority: 5,
      isEnhanced: false,
      base,
      extras,
      isGivenUp: false,
    };
    if (!this.#policy.arrive(attempt, nowMs)) {
      this.#failed(attempt);
      return;
    }
    if (request.attempts <= this.#scenario.retries) this.#await(attempt, deadlineMs, TIMEOUT);
  }

  /** The client gives an attempt up, once, and sends again where it may. */
  #failed(attempt: Attempt): void {
    const { request, isGivenUp } = attempt;
    if (isGivenUp || request.isAnswered || request.attempts > this.#scenario.retries) return;
    attempt.isGivenUp = true;
    this.#await(attempt, this.#events.nowMs + RETRY_WITHIN_MS * this.#jitter.next(), RETRY);
  }

  #serve(): void {
    while (this.#idle.length > 0) {
      const nowMs = this.#events.nowMs;
      const started = this.#policy.next(nowMs);
      if (started === undefined) return;
      const server = this.#idle.pop() ?? 0;
      const { work: attempt, extras: steps } = started;
      const costMs = costOf(attempt, steps);
      const busyMs = costMs * attempt.request.noise;
      this.#running[server] = { attempt, steps, startedMs: nowMs, costMs, busyMs };
      this.#events.schedule(nowMs + busyMs, COMPLETION + KINDS * server);
    }
  }

  #complete(server: number): void {
    const running = this.#running[server];
    if (running === undefined) return;
    this.#running[server] = undefined;
    this.#idle.push(server);
    const { attempt, steps } = running;
    const { request } = attempt;
    const nowMs = this.#events.nowMs;
    const isUseful = nowMs <= attempt.deadlineMs;
    this.book.ran(request, steps, isUseful, nowMs);
    if (isUseful) {
      request.isAnswered = true;
      this.book.answered(request, steps);
    }
    this.#policy.complete(running, nowMs);
  }

  #await(attempt: Attempt, dueMs: number, kind: number): void {
    const place = this.#freePlaces.pop() ?? this.#awaited.length;
    this.#awaited[place] = attempt;
    this.#events.schedule(dueMs, kind + KINDS * place);
  }

  #release(place: number): Attempt {
    const attempt = this.#awaited[place];
    if (attempt === undefined) throw new RangeError(`nothing waits at ${place}`);
    this.#awaited[place] = undefined;
    this.#freePlaces.push(place);
    return attempt;
  }
}
