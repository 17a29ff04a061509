import { describe, expect, it } from 'vitest';
import type { Fault } from './faults.ts';
import type { Installation } from './installation.ts';
import { runFault } from './run-fault.ts';

const HOUR_MS = 3_600_000;
/** Extractor and router apart, and fused; clocks ahead, and back. */
const SEEDS = [2, 3];
const STALLED = ['extractor', 'router', 'cpu-0'];
/** Long enough that a request that waits out the stall in a topic has used up its budget there. */
const STALL_MS = 400;
const DEADLINE_MS = 250;

type Whose = 'the broker' | 'every host' | 'the broker and every host';

/** Jumps the clocks that are meant, by an hour ahead or back. */
function jump(installation: Installation, whose: Whose, byMs: number): void {
  if (whose !== 'every host') installation.brokerClock.jump(byMs);
  if (whose !== 'the broker') for (const host of installation.up()) host.clock.jump(byMs);
}

/**
 * A stage cannot read for a while, so that requests wait in its topic until their budget is over. Where the clocks are wrong, they jump before
 * the stall, within it or after it; everything else is the same.
 */
function stall(
  stalled: string,
  whose: Whose,
  at: 'before' | 'within' | 'after',
  clocks: 'right' | 'wrong',
): Fault {
  return {
    name: `${whose}, ${at} the stall of ${stalled}, ${clocks}`,
    endings: ['EXPIRED'],
    traffic: { requests: 100, spreadMs: 1_200, deadlinesMs: [DEADLINE_MS] },
    async happen(installation) {
      const byMs = installation.random.seed % 2 === 0 ? HOUR_MS : -HOUR_MS;
      const host = installation.up(stalled)[0];
      const jumpIf = (moment: typeof at): void => {
        if (clocks === 'wrong' && at === moment) jump(installation, whose, byMs);
      };
      await installation.pass(200);
      jumpIf('before');
      await installation.pass(200);
      host?.bus.disconnect();
      await installation.pass(STALL_MS / 2);
      jumpIf('within');
      await installation.pass(STALL_MS / 2);
      host?.bus.reconnect();
      await installation.pass(200);
      jumpIf('after');
    },
  };
}

/** Requests that expired, by id. */
async function expired(fault: Fault, seed: number): Promise<string[]> {
  const { installation, violations } = await runFault(fault, seed);
  expect(violations, `${fault.name}, seed ${seed}`).toEqual([]);
  const ids = installation.auditor.results.filter(({ outcome }) => outcome === 'EXPIRED');
  return [...new Set(ids.map(({ requestId }) => requestId))].sort();
}

describe.each<Whose>(['the broker', 'every host', 'the broker and every host'])(
  'the clock of %s jumps an hour',
  (whose) => {
    it.each(STALLED.flatMap((stalled) => (['before', 'after'] as const).map((at) => ({ stalled, at }))))(
      '$at a stall of $stalled: waits in topics are charged as ever, and nobody else expires',
      async (of) => {
        for (const seed of SEEDS) {
          const right = await expired(stall(of.stalled, whose, of.at, 'right'), seed);
          const wrong = await expired(stall(of.stalled, whose, of.at, 'wrong'), seed);
          expect(wrong, `seed ${seed}`).toEqual(right);
          expect(right.length, `seed ${seed}`).toBeGreaterThan(0);
        }
      },
    );

    it.each(STALLED)(
      'within a stall of %s: nobody expires who would not have with right clocks',
      async (stalled) => {
        for (const seed of SEEDS) {
          const right = await expired(stall(stalled, whose, 'within', 'right'), seed);
          const wrong = await expired(stall(stalled, whose, 'within', 'wrong'), seed);
          expect(
            wrong.filter((id) => !right.includes(id)),
            `seed ${seed}`,
          ).toEqual([]);
        }
      },
    );
  },
);
