import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { Distribution } from '../../../../src/simulation/engine/draws.ts';
import { runWaitingLine } from '../../../../src/simulation/engine/waiting-line.ts';
import { erlangWait, pollaczekKhinchineWaitMs, within95 } from '../theory.fixture.ts';

const SEEDS = 20;
const CUSTOMERS = 40_000;
const WARM_UP = 4_000;

function waitsOf(servers: number, load: number, service: Distribution, seed: number): Float64Array {
  const between = { kind: 'exponential', mean: 1 / (servers * load) } as const;
  return runWaitingLine({ servers, between, service }, seededRandom(seed).stream, CUSTOMERS, WARM_UP).waitsMs;
}

function perSeed(figure: (seed: number) => number): number[] {
  return Array.from({ length: SEEDS }, (_, seed) => figure(seed));
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

describe('a line before k servers', () => {
  it.each([
    { servers: 1, load: 0.7 },
    { servers: 4, load: 0.8 },
    { servers: 10, load: 0.6 },
  ])("M/M/$servers at $load: Erlang's mean and p99 of the wait", ({ servers, load }) => {
    const theory = erlangWait(servers, load, 1);
    const runs = perSeed((seed) => seed).map((seed) =>
      waitsOf(servers, load, { kind: 'exponential', mean: 1 }, seed),
    );
    expect(theory.meanMs).toSatisfy(within95(runs.map(mean)));
    const p99s = runs.map((waits) => waits.sort()[Math.floor(0.99 * waits.length)] ?? 0);
    expect(theory.quantileMs(0.99)).toSatisfy(within95(p99s));
  });

  it.each([
    { kind: 'fixed', value: 1 },
    { kind: 'lognormal', mean: 1, sigma: 0.8 },
    { kind: 'uniform', from: 0.5, to: 1.5 },
  ] as const)('M/G/1 with $kind service: the mean wait of Pollaczek and Khinchine', (service) => {
    const means = perSeed((seed) => mean(waitsOf(1, 0.7, service, seed)));
    expect(pollaczekKhinchineWaitMs(0.7, service)).toSatisfy(within95(means));
  });

  it('has the same arrivals whatever the services draw', () => {
    const line = { servers: 1, between: { kind: 'exponential', mean: 2 } } as const;
    const fixed = { ...line, service: { kind: 'fixed', value: 0 } } as const;
    const drawn = { ...line, service: { kind: 'lognormal', mean: 1e-9, sigma: 1 } } as const;
    const [a, b] = [fixed, drawn].map((each) => runWaitingLine(each, seededRandom(3).stream, 1_000));
    expect(a?.endMs).toBeCloseTo(b?.endMs ?? 0, 5);
  });
});
