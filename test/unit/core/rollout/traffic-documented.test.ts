import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { addObservation, judge, startEvidence } from '../../../../src/core/rollout/evidence.ts';
import type { ArmObservation } from '../../../../src/core/rollout/observation.ts';

/** No event but those that the percentiles of the control are defined by. */
function arm(requests: number): ArmObservation {
  const over = [0.5, 0.05, 0.01].map((share) => Math.round(requests * share)) as [number, number, number];
  return { requests, errors: 0, deadLettered: 0, deadlineMissed: 0, over };
}

/** Requests of both arms, 2 000 in a look, until arms that are alike are shown to be safe. */
function requestsNeeded(percent: number, toleratedRate: number): number {
  const canary = (2_000 * percent) / 100;
  const look = { stable: arm(2_000 - canary), canary: arm(canary), stableLatencyMs: [10, 20, 40] } as const;
  const nothing = { shadow: undefined, pools: {}, scores: {}, metrics: {}, refusals: [], modelsNotReady: [] };
  let evidence = startEvidence({ percent, toleratedRate });
  let requests = 0;
  for (; judge(evidence).kind !== 'promotable' && requests < 1e6; requests += 2_000)
    evidence = addObservation(evidence, { ...look, ...nothing, atMs: 0, windowMs: 10_000, fingerprint: '' });
  return requests;
}

it.each([5, 10, 25, 50])('docs/rollouts.md says how many requests a stage of %i percent needs', (percent) => {
  const row = readFileSync('docs/rollouts.md', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`| ${percent} % |`));
  const grouped = (count: number): string => String(count).replace(/(?<=\d)(?=\d{3}$)/, ' ');
  const cells = [0.0005, 0.01].map((rate) => requestsNeeded(percent, rate));
  expect(row).toBe(`| ${percent} % | ${cells.map(grouped).join(' | ')} |`);
});
