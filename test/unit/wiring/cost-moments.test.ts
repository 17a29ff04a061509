import { describe, expect, it } from 'vitest';
import { samplesOf } from '../../../src/adapters/prometheus/metrics-page.ts';
import { prometheusTelemetry } from '../../../src/adapters/prometheus/telemetry.ts';
import { connect } from '../../../src/client/client.ts';
import { fp32, int64 } from '../../../src/client/tensors.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { embeddedTransport } from '../../../src/wiring/embedded-transport.ts';
import { millrace } from '../cli/cli.fixture.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';

/** Far more than a model's thread needs on a busy machine. */
const PATIENCE_MS = 60_000;
const REQUESTS = 220;
const SIZES = [1, 10, 40, 90];

/** The metrics page of a pipeline whose worker computed one request after another: so many batches. */
async function pageAfterRequests(): Promise<string> {
  const { settings } = loadSettings(
    { MILLRACE_WINDOW_MS: '100' },
    {
      ...{ fleet: 'examples/fleets/one-pool.yaml', policy: 'examples/policies/one-pool.yaml' },
      'worker.backend': 'onnx-cpu',
    },
  );
  const telemetry = prometheusTelemetry({ service: 'a-test', level: 'silent' });
  const transport = embeddedTransport(settings, { telemetry, random: seededRandom(1) });
  const client = await connect({ transport });
  for (let n = 0; n < REQUESTS; n += 1) {
    const candidates = SIZES[n % SIZES.length] ?? 1;
    const rows = n % 7;
    const { outcome, reason } = await client.score({
      ...{ model: 'ranker', deadlineMs: PATIENCE_MS, baselineCandidates: candidates },
      candidateIds: int64(
        'ids',
        Array.from({ length: candidates }, (_, id) => id),
      ),
      requestTensors: [
        fp32('user', [64], new Float32Array(64).fill(0.1)),
        fp32('history', [rows, 32], new Float32Array(rows * 32).fill(0.2)),
      ],
      candidateTensors: [fp32('item', [candidates, 32], new Float32Array(candidates * 32).fill(0.3))],
    });
    expect({ n, outcome, reason }).toEqual({ n, outcome: 'SCORED', reason: null });
  }
  await expect
    .poll(async () => moments(await telemetry.metricsText()).get('batches'), { timeout: PATIENCE_MS })
    .toBe(REQUESTS);
  await client.close();
  return telemetry.metricsText();
}

function moments(page: string): Map<string, number> {
  const samples = samplesOf(page, 'millrace_cost_moments_total');
  return new Map(samples.map(({ labels, value }) => [labels.get('moment') ?? '', value]));
}

describe('the metrics page of a worker', { timeout: 2 * PATIENCE_MS }, () => {
  it('tells millrace profile refit what its batches took', async () => {
    const page = await pageAfterRequests();
    const [sample] = samplesOf(page, 'millrace_cost_moments_total');
    expect(Object.fromEntries(sample?.labels ?? [])).toMatchObject({
      ...{ pool: 'cpu', model: 'ranker', version: '1', kernel: 'dense' },
    });
    // Σ N/ms lies between the least and the most candidates, times Σ 1/ms; so do rows.
    const [ones = 0, candidates = 0, rows = 0] = ['1', 'N', 'T'].map((moment) => moments(page).get(moment));
    expect(candidates / ones).toBeGreaterThan(1);
    expect(candidates / ones).toBeLessThan(90);
    expect(rows / ones).toBeGreaterThan(0);
    expect(rows / ones).toBeLessThan(6);
    const { out } = await millrace([
      ...['profile', 'refit', temporaryFolder().write('page.txt', page), '--json'],
    ]);
    const refit = JSON.parse(out);
    expect(refit).toMatchObject({ family: 'ranker', version: '1', kernel: 'dense', batches: REQUESTS });
    // On a machine that others use, times may be too noisy for a fit.
    expect(refit.refused ?? '').not.toMatch(/too few|too alike/);
    expect(refit.coefficients.some((coefficient: number) => coefficient > 0)).toBe(true);
    expect(refit.error).toBeLessThan(1);
    expect(refit.errorNow).toBeGreaterThanOrEqual(0);
  });
});
