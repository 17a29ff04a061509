import type { OutcomeKind } from '../../src/contracts/records.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { wrongIn } from './answers.ts';
import { FaultHappens } from './fault-happens.ts';
import { drawSchedule, type FaultSchedule, hidesWorkers, isExact } from './fault-schedule.ts';
import { Installation, SESSION_TIMEOUT_MS } from './installation.ts';
import { scheduleTraffic, type Traffic } from './traffic.ts';

/** Everything is answered within so long after all was mended, ms. */
const DRAIN_MS = 20_000;
/** Of two clocks, one of which runs a thousandth faster and the other a thousandth slower. */
const DRIFT_MAX = 0.002;
/** Whoever died has a successor after its session, whose first records may come twice; whoever follows the store hears of it by polling, ms. */
const CONVERGED_MS = SESSION_TIMEOUT_MS + 1_000 + 1_500;

export interface ScheduledRun {
  installation: Installation;
  /** What was wrong; empty in a good run. */
  violations: readonly string[];
}

/** The schedule of a seed, as drawn. */
export function scheduleOf(seed: number): FaultSchedule {
  return drawSchedule(seed, (name) => seededRandom(seed).stream(name));
}

/** The command that runs a schedule again, whole. */
export function commandOf(schedule: FaultSchedule): string {
  return `node test/simulation/schedule-sweep.ts --schedule '${JSON.stringify(schedule)}'`;
}

/** When the last of its faults has mended itself, from the first request on. */
function mendedMs({ events, spreadMs }: FaultSchedule): number {
  const ends = events.map((event) => event.atMs + ('forMs' in event ? event.forMs : 0));
  return Math.max(spreadMs, ...ends);
}

/**
 * One run: traffic and the schedule's faults, with safety checked all along; then, with everything mended, liveness and the books. The schedule
 * says all of it: the same one stores the same bytes.
 */
export async function runSchedule(schedule: FaultSchedule): Promise<ScheduledRun> {
  const { seed, topology, deliveryDelayMs, requests, spreadMs, deadlinesMs, events } = schedule;
  const ownRegistry = events.some(({ what }) => what === 'registry away');
  const installation = new Installation({ seed, topology, deliveryDelayMs, ownRegistry, disks: true });
  await installation.open();
  installation.startAll();
  await installation.allSettled();
  await installation.pass(300);
  const traffic = await scheduleTraffic(installation, { requests, spreadMs, deadlinesMs });
  installation.auditor.jumpedAheadMs = jumpedAheadMs(schedule);
  const happens = new FaultHappens(installation, traffic);
  for (const event of events) installation.clock.after(event.atMs, () => happens.happen(event));
  await installation.pass(mendedMs(schedule) + 50);
  await installation.allSettled();
  await drain(installation, traffic);
  await installation.pass(CONVERGED_MS);
  await installation.settle(installation.auditor.checkAllCommitted());
  const books = await closeBooks(schedule, installation, traffic, happens);
  return { installation, violations: [...installation.auditor.violations, ...books] };
}

function jumpedAheadMs({ events }: FaultSchedule): number {
  const jumps = events.map((event) =>
    event.what === 'clock jumps' && event.host === 'broker' ? Math.max(0, event.byMs) : 0,
  );
  return jumps.reduce((sum, byMs) => sum + byMs, 0);
}

async function drain(installation: Installation, traffic: Traffic): Promise<void> {
  const isOpen = (): boolean => traffic.stored < traffic.sent || installation.ledger.summary().inFlight > 0;
  for (let passedMs = 0; passedMs < DRAIN_MS && isOpen(); passedMs += 250) await installation.pass(250);
}

async function closeBooks(
  schedule: FaultSchedule,
  installation: Installation,
  traffic: Traffic,
  happens: FaultHappens,
): Promise<string[]> {
  const { ledger, auditor } = installation;
  const summary = ledger.summary();
  const wrong: string[] = [];
  const hold = (isRight: boolean, what: string): void => {
    if (!isRight) wrong.push(what);
  };
  hold(summary.balanced && summary.inFlight === 0, `the books are not closed: ${JSON.stringify(summary)}`);
  hold(summary.ingress === traffic.sent, `${traffic.sent} sent, ${summary.ingress} on ingress`);
  const isTwice = isExact(schedule) && summary.duplicatesDropped > 0;
  hold(!isTwice, `${summary.duplicatesDropped} requests were answered twice, and nobody died`);
  hold(auditor.unanswered().length === 0, `unanswered: ${auditor.unanswered().slice(0, 5).join(', ')}`);
  wrong.push(
    ...endings(schedule, installation),
    ...answers(schedule, installation, traffic),
    ...installation.creditsOff(),
    ...(await policies(installation, happens)),
  );
  for (const host of installation.up()) {
    const inFlight = host.stage?.inFlight() ?? 0;
    hold(inFlight === 0, `${host.name} has ${inFlight} in flight`);
    await installation.settle(installation.close(host));
  }
  return wrong;
}

/** Only what was poison, or met a device that fails, is a dead letter; only who was in a hurry expires. */
function endings(schedule: FaultSchedule, { auditor }: Installation): string[] {
  const isFlaky = schedule.events.some(({ what }) => what === 'flaky devices');
  const mayExpire = schedule.deadlinesMs.length > 1 || jumpedAheadMs(schedule) > 0;
  const isExpected = (requestId: string, outcome: OutcomeKind): boolean => {
    const isBad = /^(poison|garbage)-/.test(requestId);
    if (outcome === 'SCORED') return !isBad;
    if (outcome === 'DEAD_LETTERED') return isBad || isFlaky;
    return outcome === 'EXPIRED' && mayExpire;
  };
  return auditor.results.flatMap(({ requestId, outcome, reason }) =>
    isExpected(requestId, outcome) ? [] : [`${requestId} is ${outcome}: ${reason?.message}`],
  );
}

/** Where the broker's clock jumps, nobody knows how long anything took. */
function answers(schedule: FaultSchedule, { auditor }: Installation, { asked }: Traffic): string[] {
  if (schedule.events.some((event) => event.what === 'clock jumps' && event.host === 'broker')) return [];
  const drift = schedule.events.some(({ what }) => what === 'clock drifts') ? DRIFT_MAX : 0;
  // What clocks went apart by while a record could not be read is in its wait.
  const circumstances = { drift, apartMs: drift * mendedMs(schedule), mayFallBack: hidesWorkers(schedule) };
  return auditor.results.flatMap((result, place) => {
    const of = asked.get(result.requestId);
    const wrong = of && wrongIn(result, of, auditor.tookMs[place] ?? 0, circumstances);
    return wrong === undefined ? [] : [`${result.requestId}: ${wrong}`];
  });
}

async function policies(installation: Installation, { version }: FaultHappens): Promise<string[]> {
  const wrong: string[] = [];
  for (const [router, applied] of installation.epochs) {
    const rises = applied.every((epoch, place) => place === 0 || epoch > (applied[place - 1] ?? 0));
    if (!rises) wrong.push(`${router} applied the epochs ${applied.join(', ')}`);
  }
  const behind = await installation.routersBehind();
  if (behind.length > 0) wrong.push(`${behind.join(', ')} did not follow the policy`);
  if (version > 1 && !(await installation.isPolicyStored()))
    wrong.push('the store has lost the policy for good');
  for (const [router, runs] of installation.routerVersions())
    if (runs !== version) wrong.push(`${router} runs version ${runs}, and ${version} was published`);
  return wrong;
}
