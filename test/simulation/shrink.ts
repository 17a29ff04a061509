import type { FaultEvent, FaultSchedule } from './fault-schedule.ts';
import { runSchedule } from './run-schedule.ts';

/** What went wrong in a run. */
export interface Failure {
  readonly violations: readonly string[];
}

/** Undefined where a schedule runs well. */
export type Judge = (schedule: FaultSchedule) => Promise<Failure | undefined>;

/** Runs the schedule; an exception is a failure as well. */
export async function failureOf(schedule: FaultSchedule): Promise<Failure | undefined> {
  const violations = await runSchedule(schedule).then(
    (run) => run.violations,
    (error: unknown) => [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  );
  return violations.length === 0 ? undefined : { violations };
}

/**
 * Cuts a failing schedule to a small one that still fails: events are dropped, ever smaller parts of them down to single ones (ddmin, Zeller and
 * Hildebrandt 2002), then the traffic is halved as long as it fails.
 */
export async function shrink(
  schedule: FaultSchedule,
  judge: Judge,
): Promise<{ schedule: FaultSchedule; runs: number }> {
  let runs = 0;
  const fails = async (candidate: FaultSchedule): Promise<boolean> => {
    runs += 1;
    return (await judge(candidate)) !== undefined;
  };
  let least: FaultSchedule = {
    ...schedule,
    events: await fewestEvents(schedule.events, (events) => fails({ ...schedule, events })),
  };
  for (const change of SIMPLER) {
    for (let next = change(least); next !== undefined && (await fails(next)); next = change(least))
      least = next;
  }
  return { schedule: least, runs };
}

/** Each gives a simpler schedule, or nothing where it can be no simpler that way. */
const SIMPLER: readonly ((schedule: FaultSchedule) => FaultSchedule | undefined)[] = [
  (of) => (of.requests > 1 ? { ...of, requests: Math.floor(of.requests / 2) } : undefined),
  (of) => (of.requests > 1 ? { ...of, requests: of.requests - 1 } : undefined),
  (of) => (of.deliveryDelayMs > 0 ? { ...of, deliveryDelayMs: 0 } : undefined),
  (of) => (of.deadlinesMs.length > 1 ? { ...of, deadlinesMs: [60_000] } : undefined),
];

async function fewestEvents(
  all: readonly FaultEvent[],
  fails: (events: readonly FaultEvent[]) => Promise<boolean>,
): Promise<readonly FaultEvent[]> {
  let events = all;
  if (await fails([])) return [];
  for (let size = Math.ceil(events.length / 2); size >= 1; ) {
    const smaller = await withoutOnePart(events, size, fails);
    if (smaller !== undefined) {
      events = smaller;
      size = Math.min(size, Math.max(1, events.length - 1));
    } else if (size === 1) break;
    else size = Math.ceil(size / 2);
  }
  return events;
}

async function withoutOnePart(
  events: readonly FaultEvent[],
  size: number,
  fails: (events: readonly FaultEvent[]) => Promise<boolean>,
): Promise<readonly FaultEvent[] | undefined> {
  for (let from = 0; from < events.length; from += size) {
    const rest = [...events.slice(0, from), ...events.slice(from + size)];
    if (rest.length > 0 && (await fails(rest))) return rest;
  }
  return undefined;
}
