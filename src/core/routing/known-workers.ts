import { dealWorkers } from './deal-workers.ts';
import { SCORE_RULES } from './router-score.ts';
import type { WorkerStatus } from './slot.ts';
import { WorkerBacklog } from './worker-backlog.ts';

/** One life of a worker. */
interface KnownWorker {
  status: WorkerStatus;
  statusAtMs: number;
  readonly backlog: WorkerBacklog;
}

/** A heartbeat is not on its way for so long. */
const FORGOTTEN_MS = 60_000;
/** Routers hear other heartbeats of one worker, each a little of its own: speeds that differ by less than this are dealt as equal. */
const ALIKE = 1.5;

/**
 * The workers that a router has heard of, how long it believes the queue of each to be, and which of them are its own: those of a class are dealt
 * among the routers, and dealt anew whenever a worker or a router comes or goes. Where routers disagree for a while about who is there, they
 * disagree about owners, which costs some of the balance and nothing else.
 */
export class KnownWorkers {
  readonly #staleMs: number;
  readonly #workers = new Map<string, KnownWorker>();
  #router = '';
  #routers: readonly string[] = [''];

  /** @param staleMs a worker whose last heartbeat is older is owned by nobody */
  constructor(staleMs: number) {
    this.#staleMs = staleMs;
  }

  get size(): number {
    return this.#workers.size;
  }

  /** @returns the backlog of that life of the worker; undefined for a heartbeat that comes after a later one of the same life */
  heard(status: WorkerStatus, nowMs: number): WorkerBacklog | undefined {
    const known = this.#workers.get(status.worker);
    const isSameLife = known?.status.incarnation === status.incarnation;
    if (isSameLife && status.sequence <= known.status.sequence) return undefined;
    const speed = speedOf(status);
    const backlog = isSameLife ? known.backlog : new WorkerBacklog(speed, SCORE_RULES);
    this.#workers.set(status.worker, { status, statusAtMs: nowMs, backlog });
    backlog.declared(speed);
    // It does not tell which of this router's dispatches are in the queue: where there is one, acknowledgements do.
    if (backlog.unacknowledgedMs === 0) backlog.heard(status.queuedPredictedMs, nowMs);
    if (!isSameLife) this.deal(nowMs);
    return backlog;
  }

  remove(worker: string, nowMs: number): void {
    if (this.#workers.delete(worker)) this.deal(nowMs);
  }

  /** Those that fell silent long ago without a good-bye. */
  forgetSilent(nowMs: number): void {
    for (const [worker, { statusAtMs }] of this.#workers)
      if (nowMs - statusAtMs > FORGOTTEN_MS) this.#workers.delete(worker);
  }

  /** @param routers those that are there, `own` among them or not */
  routersAre(own: string, routers: readonly string[], nowMs: number): void {
    this.#router = own;
    this.#routers = [...new Set([own, ...routers])].sort();
    this.deal(nowMs);
  }

  /** By what is there now. */
  deal(nowMs: number): void {
    const own = this.#routers.indexOf(this.#router);
    const numbers = this.#routers.map((_, number) => number);
    for (const workers of Map.groupBy(this.#live(nowMs), ({ status }) => status.accelerator).values()) {
      const byName = workers.sort((a, b) => (a.status.worker < b.status.worker ? -1 : 1));
      const owners = dealWorkers(
        byName.map(({ status }) => alike(speedOf(status))),
        numbers,
      );
      byName.forEach(({ backlog }, place) => {
        backlog.isOwned = owners[place] === own;
      });
    }
  }

  #live(nowMs: number): KnownWorker[] {
    return [...this.#workers.values()].filter(({ statusAtMs }) => nowMs - statusAtMs <= this.#staleMs);
  }
}

function speedOf({ speed }: WorkerStatus): number {
  return speed > 0 ? speed : 1;
}

function alike(speed: number): number {
  return ALIKE ** Math.round(Math.log(speed) / Math.log(ALIKE));
}
