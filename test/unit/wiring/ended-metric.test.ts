import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { fp32 } from '../../../src/client/tensors.ts';
import { connect, embedded } from '../../../src/wiring/sdk.ts';

const REQUEST = {
  model: 'ranker',
  baselineCandidates: 3,
  requestTensors: [fp32('user', [64], new Float32Array(64).fill(0.1))],
  candidateTensors: [fp32('item', [3, 32], new Float32Array(96))],
};

it.each(['split', 'fused'] as const)(
  'what ends without scores is counted, wherever it ends: %s',
  async (topology) => {
    const telemetry = silentTelemetry();
    const client = await connect({ transport: embedded({ topology, telemetry, seed: 1 }) });
    const requests = Array.from({ length: 40 }, (_, n) => ({
      ...REQUEST,
      model: n % 4 === 0 ? 'nobody' : 'ranker',
      // Whether there is time enough is for the machine to say: what counts is that the metric agrees with the results.
      deadlineMs: n % 4 === 1 ? 60_000 : 1,
    }));
    const results = await Promise.all(requests.map((request) => client.score(request)));
    const ended = results.filter(({ outcome }) => outcome !== 'SCORED');
    expect(ended.filter(({ outcome }) => outcome === 'REJECTED')).toHaveLength(10);
    for (const { outcome, reason } of ended) {
      const labels = { outcome: outcome.toLowerCase(), code: reason?.code ?? '' };
      const alike = ended.filter((other) => other.outcome === outcome && other.reason?.code === reason?.code);
      expect([labels, telemetry.value('millrace_ended_total', labels)]).toEqual([labels, alike.length]);
    }
    expect(telemetry.total('millrace_ended_total')).toBe(ended.length);
    await client.close();
  },
  60_000,
);
