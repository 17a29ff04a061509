import type { ScoreRequest } from '../contracts/records.ts';
import type { Clock } from '../ports/clock.ts';
import type { Arrival } from './arrivals.ts';
import type { RequestMaker } from './request-maker.ts';

export interface DriveOptions {
  arrivals: Iterator<Arrival>;
  maker: RequestMaker;
  clock: Clock;
  /** First part of the request ids. */
  idPrefix: string;
  send(request: ScoreRequest): Promise<void>;
  /** Stops after so many requests, or so long, or when aborted; whichever comes first. Aborted, it ends within 300 ms. */
  requestsMax: number;
  durationMs: number;
  signal?: AbortSignal;
}

export interface Driven {
  sent: number;
  /** Requests that the bus refused. */
  refused: number;
  /** How late the latest request left against its intended time, ms. */
  behindMsMax: number;
}

/** A pause shorter than this is not waited for: timers are no finer. */
const PAUSE_MIN_MS = 1;
/** How long requests under way are waited for after an abort: a bus that does not answer takes none of them. */
const ABORTED_MS = 300;

/** Open loop: each request leaves at its intended time, or as soon after as it can, whatever became of those before it. */
export async function drive(options: DriveOptions): Promise<Driven> {
  const { arrivals, maker, clock, signal } = options;
  const startedMs = clock.monotonicMs();
  const driven: Driven = { sent: 0, refused: 0, behindMsMax: 0 };
  const underWay: Promise<void>[] = [];
  let dueMs = startedMs;
  for (let n = 0; n < options.requestsMax && !isAborted(signal); n += 1) {
    const next = arrivals.next();
    if (next.done === true) break;
    dueMs += next.value.afterMs;
    if (dueMs - startedMs > options.durationMs) {
      await pause(clock, options.durationMs - (clock.monotonicMs() - startedMs), signal);
      break;
    }
    const aheadMs = dueMs - clock.monotonicMs();
    if (aheadMs > PAUSE_MIN_MS) await pause(clock, aheadMs, signal);
    if (isAborted(signal)) break;
    driven.behindMsMax = Math.max(driven.behindMsMax, clock.monotonicMs() - dueMs);
    driven.sent += 1;
    const sending = options.send(maker.make(`${options.idPrefix}${n}`, next.value.shape)).catch(() => {
      driven.refused += 1;
    });
    underWay.push(sending);
    if (underWay.length >= 10_000) await settled(underWay.splice(0, 5_000), clock, signal);
  }
  await settled(underWay, clock, signal);
  return driven;
}

/** Until all have left, or shortly after the abort. */
async function settled(
  underWay: readonly Promise<void>[],
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  const all = Promise.all(underWay);
  if (signal === undefined) {
    await all;
    return;
  }
  const leave = Promise.withResolvers<void>();
  let cancel = (): void => undefined;
  const onAbort = (): void => {
    cancel = clock.after(ABORTED_MS, leave.resolve);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  await Promise.race([all, leave.promise]);
  signal.removeEventListener('abort', onAbort);
  cancel();
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function pause(clock: Clock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  if (delayMs <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = clock.after(delayMs, done);
    function done(): void {
      signal?.removeEventListener('abort', done);
      cancel();
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
  });
}
