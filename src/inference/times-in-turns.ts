import type { Clock } from '../ports/clock.ts';

/** Runs of a call in a round, at most. */
const RUNS = 5;
const ROUNDS_MAX = 9;

export interface TimesInTurns {
  /** By call, ms: the median of a round's runs, in the fastest of the rounds. */
  readonly times: number[];
  readonly rounds: number;
  readonly runs: number;
}

/**
 * Measures calls beside each other for about `measureMs`. What neighbours take of a machine changes over seconds, so rounds go over all calls in turn,
 * and the fastest is the one that had it to itself. Each call answers what it took, ms.
 */
export async function timesInTurns(
  calls: readonly (() => Promise<number>)[],
  { clock, measureMs }: { clock: Pick<Clock, 'monotonicMs'>; measureMs: number },
): Promise<TimesInTurns> {
  const times = new Array<number>(calls.length).fill(Number.POSITIVE_INFINITY);
  const firstMs = clock.monotonicMs();
  for (const call of calls) await call();
  const startedMs = clock.monotonicMs();
  const runs = runsIn(measureMs, startedMs - firstMs);
  let rounds = 0;
  while (rounds === 0 || (rounds < ROUNDS_MAX && clock.monotonicMs() - startedMs < measureMs)) {
    for (const [n, call] of calls.entries()) {
      await call();
      const taken: number[] = [];
      for (let run = 0; run < runs; run += 1) taken.push(await call());
      times[n] = Math.min(times[n] ?? Number.POSITIVE_INFINITY, median(taken));
    }
    rounds += 1;
  }
  return { times, rounds, runs };
}

/** How often a round runs each call, where a run of all of them took `passMs`. */
function runsIn(measureMs: number, passMs: number): number {
  return passMs > 0 ? Math.max(1, Math.min(RUNS, Math.floor(measureMs / passMs))) : RUNS;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
