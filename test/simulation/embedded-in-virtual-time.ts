import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import type { Connection } from '../../src/client/connection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { type VirtualClock, virtualClock } from '../../src/simulation/virtual-clock.ts';
import {
  type OutsideLedger,
  type OutsideLedgerOptions,
  openOutsideLedger,
} from '../../src/traffic/outside-ledger.ts';
import { type EmbeddedPipeline, startEmbedded } from '../../src/wiring/embedded.ts';

/** The whole pipeline, an outside client and the books, on one virtual clock. */
export interface VirtualPipeline {
  clock: VirtualClock;
  pipeline: EmbeddedPipeline;
  client: Connection;
  ledger: OutsideLedger;
  telemetry: ReturnType<typeof silentTelemetry>;
  /** Advances virtual time until the promise settles. */
  settle<T>(promise: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const STEP_MS = 5;
/** Files of the model repository are read in real time, and on a busy machine that takes a while. */
const REAL_MS_MAX = 45_000;

export async function startVirtualPipeline(
  overrides: Readonly<Record<string, unknown>> = {},
  options: { seed?: number; ledger?: OutsideLedgerOptions } = {},
): Promise<VirtualPipeline> {
  const { settings } = loadSettings(
    {},
    {
      'worker.backend': 'immediate',
      fleet: 'examples/fleets/one-pool.yaml',
      policy: 'examples/policies/one-pool.yaml',
      ...overrides,
    },
  );
  const clock = virtualClock();
  const telemetry = silentTelemetry();
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    promise.then(done, done);
    for (const until = Date.now() + REAL_MS_MAX; Date.now() < until; ) {
      await new Promise((resolve) => setImmediate(resolve));
      if (settled) return promise;
      await clock.advanceBy(STEP_MS);
    }
    throw new Error('the promise did not settle');
  };
  const pipeline = await settle(
    startEmbedded(settings, { telemetry, random: seededRandom(options.seed ?? 1), clock }),
  );
  const client = await settle(pipeline.connect());
  const ledger = await settle(openOutsideLedger(client, options.ledger));
  await clock.advanceBy(500);
  return {
    clock,
    pipeline,
    client,
    ledger,
    telemetry,
    settle,
    async close() {
      await settle(ledger.close());
      await settle(client.close());
      await settle(pipeline.close());
    },
  };
}
