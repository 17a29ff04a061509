import { type Fault, SPREAD_MS } from './faults.ts';
import { Installation, type InstallationOptions, SESSION_TIMEOUT_MS } from './installation.ts';
import { scheduleTraffic, type TrafficOptions } from './traffic.ts';

/** Everything is answered within so long after the fault was mended, deadlines of a minute included. */
const DRAIN_MS = 90_000;

export interface FaultRun {
  /** All that the run depended on, and how to run it again. */
  told: string;
  installation: Installation;
  /** What was wrong; empty in a good run. */
  violations: readonly string[];
}

/** One run: traffic, the fault in the midst of it, a drain, and the books. The seed and the fault's name say all of it. */
export async function runFault(fault: Fault, seed: number): Promise<FaultRun> {
  const setup: InstallationOptions = {
    seed,
    deliveryDelayMs: seed % 4,
    topology: seed % 3 === 0 ? 'fused' : 'split',
    ownRegistry: fault.ownRegistry === true,
  };
  const told = `${fault.name}: ${JSON.stringify(setup)}; again: node test/simulation/sweep.ts ${seed} 1 "${fault.name}"`;
  const installation = new Installation(setup);
  await installation.open();
  installation.startAll();
  await installation.allSettled();
  await installation.pass(300);
  const options: TrafficOptions = {
    requests: 60,
    spreadMs: SPREAD_MS,
    deadlinesMs: [60_000],
    ...fault.traffic,
  };
  const traffic = await scheduleTraffic(installation, options);
  const startedMs = installation.clock.monotonicMs();
  await fault.happen(installation, traffic);
  await installation.pass(Math.max(0, startedMs + options.spreadMs - installation.clock.monotonicMs()) + 50);
  await installation.allSettled();
  for (let passedMs = 0; passedMs < DRAIN_MS && isOpen(); passedMs += 250) await installation.pass(250);
  await installation.pass(SESSION_TIMEOUT_MS);
  await installation.settle(installation.auditor.checkAllCommitted());
  return { told, installation, violations: [...installation.auditor.violations, ...(await closeBooks())] };

  function isOpen(): boolean {
    return traffic.stored < traffic.sent || installation.ledger.summary().inFlight > 0;
  }

  async function closeBooks(): Promise<string[]> {
    const { ledger, auditor, epochs } = installation;
    const summary = ledger.summary();
    const wrong: string[] = [];
    const hold = (isRight: boolean, what: string): void => {
      if (!isRight) wrong.push(what);
    };
    hold(summary.balanced && summary.inFlight === 0, `the books are not closed: ${JSON.stringify(summary)}`);
    hold(
      fault.exact !== true || summary.duplicatesDropped === 0,
      `${summary.duplicatesDropped} requests were answered twice`,
    );
    for (const { outcome, requestId, reason } of auditor.results) {
      const isExpected = outcome === 'SCORED' || fault.endings?.includes(outcome) === true;
      hold(isExpected, `${requestId} is ${outcome}: ${reason?.message}`);
    }
    hold(summary.ingress === traffic.sent, `${traffic.sent} sent, ${summary.ingress} on ingress`);
    hold(auditor.unanswered().length === 0, `unanswered: ${auditor.unanswered().slice(0, 5).join(', ')}`);
    for (const [router, applied] of epochs) {
      const rises = applied.every((epoch, place) => place === 0 || epoch > (applied[place - 1] ?? 0));
      hold(rises, `${router} applied the epochs ${applied.join(', ')}`);
    }
    const behind = await installation.routersBehind();
    hold(behind.length === 0, `${behind.join(', ')} did not follow the policy`);
    for (const host of installation.up()) {
      const inFlight = host.stage?.inFlight() ?? 0;
      hold(inFlight === 0, `${host.name} has ${inFlight} in flight`);
      await installation.settle(installation.close(host));
    }
    return wrong;
  }
}
