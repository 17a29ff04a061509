/** Short, so that whatever else the machine does falls on both. */
const TURN_MS = 20;
const CALLS_MIN = 30;
const WARM_UP_CALLS = 10;

/**
 * How many times as fast the second call is as the first, of calls in turn. Of each the tenth that was disturbed least counts: where others use
 * the machine, too, most calls are interrupted, and the longer ones more often.
 */
export async function ratioInTurns(
  first: () => Promise<unknown>,
  second: () => Promise<unknown>,
  measureMs: number,
): Promise<number> {
  for (let n = 0; n < WARM_UP_CALLS; n += 1) {
    await first();
    await second();
  }
  const [ofFirst, ofSecond]: [number[], number[]] = [[], []];
  const endMs = performance.now() + measureMs;
  while (performance.now() < endMs || Math.min(ofFirst.length, ofSecond.length) < CALLS_MIN) {
    ofFirst.push(...(await turn(first)));
    ofSecond.push(...(await turn(second)));
  }
  return lowestTenth(ofFirst) / lowestTenth(ofSecond);
}

/** What each call took, ms, but for the first: it finds the caches as the other left them. */
async function turn(call: () => Promise<unknown>): Promise<number[]> {
  await call();
  const times: number[] = [];
  const untilMs = performance.now() + TURN_MS;
  do {
    const startedMs = performance.now();
    await call();
    times.push(performance.now() - startedMs);
  } while (performance.now() < untilMs);
  return times;
}

function lowestTenth(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 10)] ?? Number.NaN;
}
