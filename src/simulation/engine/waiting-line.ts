import type { Generator } from '../../core/random/generator.ts';
import { type Distribution, drawsOf } from './draws.ts';
import { EventQueue } from './event-queue.ts';

/** One line before servers that are all alike, first come first served: G/G/k of the textbooks. */
export interface WaitingLine {
  readonly servers: number;
  /** Times between arrivals, ms. */
  readonly between: Distribution;
  /** Times of service, ms. */
  readonly service: Distribution;
}

export interface WaitingLineRun {
  /** Arrivals and completions. */
  readonly events: number;
  readonly endMs: number;
  /** The wait of each customer before its service, ms, in the order of arrival; those of the warm-up are left out. */
  readonly waitsMs: Float64Array;
}

const ARRIVAL = 0;
const COMPLETION = 1;

/**
 * The smallest model that does what every model here does: it draws, schedules and takes. `bench/simulation-engine.ts` measures the engine by it.
 * Its streams are named, so that a run of another service has the very same arrivals.
 *
 * @param customers that arrive after the warm-up
 * @param warmUp customers at the start whose waits are not kept
 */
export function runWaitingLine(
  line: WaitingLine,
  stream: (name: string) => Generator,
  customers: number,
  warmUp = 0,
): WaitingLineRun {
  const between = drawsOf(line.between, stream('arrivals'));
  const service = drawsOf(line.service, stream('services'));
  const total = customers + warmUp;
  const queue = new EventQueue();
  const arrivedMs = new Float64Array(total);
  const waitsMs = new Float64Array(customers);
  let arrived = 0;
  let started = 0;
  let idle = line.servers;
  let events = 0;

  queue.schedule(between(), ARRIVAL);
  while (queue.size > 0) {
    const event = queue.take();
    const nowMs = queue.nowMs;
    events += 1;
    if (event === ARRIVAL) {
      arrivedMs[arrived++] = nowMs;
      if (arrived < total) queue.schedule(nowMs + between(), ARRIVAL);
    } else idle += 1;
    while (idle > 0 && started < arrived) {
      if (started >= warmUp) waitsMs[started - warmUp] = nowMs - (arrivedMs[started] ?? 0);
      started += 1;
      idle -= 1;
      queue.schedule(nowMs + service(), COMPLETION);
    }
  }
  return { events, endMs: queue.nowMs, waitsMs };
}
