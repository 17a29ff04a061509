import { expect, it } from 'vitest';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';
import { type VirtualClock, virtualClock } from '../../src/simulation/virtual-clock.ts';
import { startEmbedded } from '../../src/wiring/embedded.ts';

/** Files are read in real time, so both kinds of time go on until the promise settles. */
async function failure(promise: Promise<unknown>, clock: VirtualClock): Promise<string> {
  let message: string | undefined;
  promise.then(
    () => {
      message = 'it started';
    },
    (error: unknown) => {
      message = String(error);
    },
  );
  for (let turn = 0; message === undefined && turn < 100_000; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advanceBy(1);
  }
  return message ?? 'it never settled';
}

/** Breaks the extractor, which starts last. */
function failingTelemetry(): Telemetry {
  const telemetry = silentTelemetry();
  return {
    ...telemetry,
    counter: (definition) => {
      if (definition.name === 'millrace_extracted_total') throw new Error('no counters today');
      return telemetry.counter(definition);
    },
  };
}

it.each([
  [
    'a policy that does not fit the fleet',
    { policy: 'examples/policies/starter.yaml' },
    silentTelemetry(),
    /gpu-a100/,
  ],
  [
    'a stage that fails',
    { policy: 'examples/policies/one-pool.yaml' },
    failingTelemetry(),
    /no counters today/,
  ],
])(
  'an embedded run that cannot start for %s says so, and leaves nothing running',
  async (_name, override, telemetry, message) => {
    const clock = virtualClock();
    const { settings } = loadSettings(
      {},
      { 'worker.backend': 'immediate', fleet: 'examples/fleets/one-pool.yaml', ...override },
    );
    const starting = startEmbedded(settings, { telemetry, random: seededRandom(1), clock });
    expect(await failure(starting, clock)).toMatch(message);
    await clock.advanceBy(60_000);
    expect(clock.pending).toBe(0);
  },
);
