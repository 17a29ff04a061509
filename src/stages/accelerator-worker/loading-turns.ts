import type { Accelerator } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, Lease } from '../../ports/control-store.ts';

export interface LoadingTurns {
  store: Pick<ControlStore, 'acquireLease'>;
  clock: Clock;
  /** The machine, whose processors loading and serving share. */
  host: string;
  /** Who takes the turn. */
  worker: string;
}

/** A worker that died in its turn is waited for no longer. */
const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
const LOOK_MS = 200;
/** Whoever waited so long loads all the same. */
const WAIT_MAX_MS = 60_000;

/**
 * The workers of a machine load versions beside those that serve one after another, by a lease in the store: making a session and running golden
 * cases take a whole processor, and where every worker does it at once nothing is left for the requests. A store that is away holds nobody up.
 */
export function takingTurns(
  backend: Pick<Accelerator, 'load'>,
  turns: LoadingTurns,
): Pick<Accelerator, 'load'> {
  let loads = 0;
  return {
    async load(family, version, options) {
      if (options?.besideOthers !== true) return backend.load(family, version, options);
      loads += 1;
      const turn = await waitForTurn(turns, `${turns.worker}/${loads}`);
      const stopRenewing = turns.clock.every(RENEW_MS, () => void turn?.renew().catch(() => undefined));
      try {
        return await backend.load(family, version, options);
      } finally {
        stopRenewing();
        await turn?.release().catch(() => undefined);
      }
    },
  };
}

/** Undefined where the store is away, or the wait was too long. */
async function waitForTurn({ store, clock, host }: LoadingTurns, holder: string): Promise<Lease | undefined> {
  const untilMs = clock.monotonicMs() + WAIT_MAX_MS;
  while (clock.monotonicMs() < untilMs) {
    try {
      const lease = await store.acquireLease([`loading/${host}`], holder, LEASE_MS);
      if (lease !== undefined) return lease;
    } catch {
      return undefined;
    }
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }
  return undefined;
}
