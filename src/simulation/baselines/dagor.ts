const QUEUE_MS_MAX = 20;
const WINDOW_MS = 1_000;
const WINDOW_REQUESTS = 2_000;
/** Fewer by this share where overloaded, more by that of all that came where not. */
const ALPHA = 0.05;
const BETA = 0.01;

export interface DagorLevels {
  business: number;
  user: number;
}

/**
 * DAGOR's admission: requests up to a level of (business, user) priority are let in, and the level moves once a window by how many it let in and
 * how long they queued. Zhou et al., "Overload Control for Scaling WeChat Microservices" (SoCC 2018), algorithm 1: overloaded where the mean queueing time is
 * above 20 ms; a window is 1 s or 2 000 requests; α 5 %, β 1 %.
 */
export class Dagor {
  readonly #users: number;
  readonly #counts: Float64Array;
  #level: number;
  #arrived = 0;
  #admitted = 0;
  #queuedMs = 0;
  #started = 0;
  #sinceMs = 0;

  constructor({ business, user }: DagorLevels) {
    this.#users = user;
    this.#counts = new Float64Array(business * user);
    this.#level = this.#counts.length - 1;
  }

  /** The last compound level that is let in; below 0, none is. */
  get level(): number {
    return this.#level;
  }

  /** Both priorities from 0, the highest. */
  admits(business: number, user: number, nowMs: number): boolean {
    if (this.#arrived >= WINDOW_REQUESTS || nowMs - this.#sinceMs >= WINDOW_MS) this.#endWindow(nowMs);
    const level = business * this.#users + user;
    this.#counts[level] = (this.#counts[level] ?? 0) + 1;
    this.#arrived += 1;
    if (level > this.#level) return false;
    this.#admitted += 1;
    return true;
  }

  started(queuedMs: number): void {
    this.#queuedMs += queuedMs;
    this.#started += 1;
  }

  #endWindow(nowMs: number): void {
    const isOverloaded = this.#started > 0 && this.#queuedMs / this.#started > QUEUE_MS_MAX;
    let admitted = this.#admitted;
    if (isOverloaded) {
      const wanted = (1 - ALPHA) * this.#admitted;
      while (admitted > wanted && this.#level >= 0) {
        admitted -= this.#counts[this.#level] ?? 0;
        this.#level -= 1;
      }
    } else {
      const wanted = this.#admitted + BETA * this.#arrived;
      while (admitted < wanted && this.#level < this.#counts.length - 1) {
        this.#level += 1;
        admitted += this.#counts[this.#level] ?? 0;
      }
    }
    this.#counts.fill(0);
    this.#arrived = this.#admitted = this.#queuedMs = this.#started = 0;
    this.#sinceMs = nowMs;
  }
}
