import { costOf, type PoolRequest, worthOf } from './pool-request.ts';

/** What happened to the requests that were sent in one second, and what the servers did in it. */
export interface PoolSecond {
  sent: number;
  answered: number;
  value: number;
  /** Server time of answers that came in time, ms. */
  usefulMs: number;
  /** Server time of all that ended. */
  busyMs: number;
  limit: number;
}

/** Counts per second of virtual time; a request belongs to the second in which it was first sent, server time to that in which it ended. */
export class PoolBook {
  readonly seconds: PoolSecond[] = [];

  sent({ sentMs }: PoolRequest): void {
    this.#at(sentMs).sent += 1;
  }

  answered(request: PoolRequest, steps: number): void {
    const second = this.#at(request.sentMs);
    second.answered += 1;
    second.value += worthOf(request, steps);
  }

  ran(request: PoolRequest, steps: number, isUseful: boolean, endedMs: number): void {
    const second = this.#at(endedMs);
    const busyMs = costOf(request, steps) * request.noise;
    second.busyMs += busyMs;
    if (isUseful) second.usefulMs += busyMs;
  }

  limit(limit: number, nowMs: number): void {
    this.#at(nowMs).limit = limit;
  }

  #at(ms: number): PoolSecond {
    const index = Math.floor(ms / 1_000);
    for (let next = this.seconds.length; next <= index; next++)
      this.seconds.push({ sent: 0, answered: 0, value: 0, usefulMs: 0, busyMs: 0, limit: 0 });
    const second = this.seconds[index];
    if (second === undefined) throw new RangeError(`no second ${index}`);
    return second;
  }
}

/** The seconds from `from` up to `to`, summed. */
export function sumSeconds(seconds: readonly PoolSecond[], from: number, to: number): PoolSecond {
  const sum = { sent: 0, answered: 0, value: 0, usefulMs: 0, busyMs: 0, limit: 0 };
  for (const second of seconds.slice(from, to)) {
    sum.sent += second.sent;
    sum.answered += second.answered;
    sum.value += second.value;
    sum.usefulMs += second.usefulMs;
    sum.busyMs += second.busyMs;
    sum.limit += second.limit / (to - from);
  }
  return sum;
}
