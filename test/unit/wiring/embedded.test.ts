import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { ScoredResult } from '../../../src/contracts/records.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { generatedArrivals } from '../../../src/traffic/arrivals.ts';
import { readCatalogue } from '../../../src/traffic/catalogue.ts';
import { drive } from '../../../src/traffic/drive.ts';
import { openOutsideLedger } from '../../../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../../../src/traffic/request-maker.ts';
import { openSender } from '../../../src/traffic/send-requests.ts';
import { startEmbedded } from '../../../src/wiring/embedded.ts';

/** Far more than a model's thread needs on a busy machine: this is about what is answered, not when. */
const PATIENCE_MS = 60_000;

/** What becomes of ten requests that a policy sends to the kernel `sparse`. */
async function answers(backend: string) {
  const { settings } = loadSettings(
    {},
    {
      policy: 'test/unit/wiring/sparse-policy.yaml',
      fleet: 'test/unit/wiring/claims-sparse-fleet.yaml',
      'worker.backend': backend,
    },
  );
  const random = seededRandom(2);
  const pipeline = await startEmbedded(settings, { telemetry: silentTelemetry(), random });
  const client = await pipeline.connect();
  const results: ScoredResult[] = [];
  const ledger = await openOutsideLedger(client, { onResult: (result) => results.push(result) });
  await drive({
    arrivals: generatedArrivals(
      { ratePerSecond: 500, candidatesMax: 32, historyRowsMax: 8 },
      random.stream('arrivals'),
    ),
    maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
      deadlineMs: PATIENCE_MS,
    }),
    clock: pipeline.clock,
    idPrefix: 'sparse-',
    send: await openSender(client),
    requestsMax: 10,
    durationMs: PATIENCE_MS,
  });
  await ledger.drained(PATIENCE_MS, 10);
  const summary = ledger.summary();
  await ledger.close();
  await client.close();
  await pipeline.close();
  expect(summary).toMatchObject({ ingress: 10, inFlight: 0, balanced: true });
  for (const result of results) expect(result.candidatesScored).toBe(result.baselineCandidates);
  return { outcomes: summary.outcomes, results };
}

describe('a request that a policy sends to a kernel', { timeout: 2 * PATIENCE_MS }, () => {
  it('that no worker has is answered by another kernel, DEGRADED, and the answer says which', async () => {
    const { outcomes, results } = await answers('onnx-cpu');
    expect(outcomes).toMatchObject({ degraded: 10 });
    for (const result of results) {
      expect(result.reason).toMatchObject({
        code: 'NO_TARGET',
        message: 'kernel dense computed it in place of sparse',
      });
    }
  });

  it('that a worker has is answered by it', async () => {
    const { outcomes, results } = await answers('sparse-cpu');
    expect(outcomes).toMatchObject({ scored: 10 });
    for (const result of results) expect(result.target).toMatchObject({ kernel: 'sparse' });
  });
});
