import { describe, expect, it } from 'vitest';
import { powerOfTwo } from '../../../../src/simulation/baselines/power-of-two.ts';
import { randomChoice } from '../../../../src/simulation/baselines/random-choice.ts';
import type { CreateChooser } from '../../../../src/simulation/routing/chooser.ts';
import { erlangWait, pollaczekKhinchineWaitMs, within95 } from '../theory.fixture.ts';
import { overSeeds, run, textbook } from './scenario.fixture.ts';

describe('workers chosen at random, each a queue of its own', () => {
  it.each([
    { kind: 'exponential', mean: 1 },
    { kind: 'fixed', value: 1 },
    { kind: 'lognormal', mean: 1, sigma: 0.8 },
  ] as const)('with $kind work: the mean wait of Pollaczek and Khinchine', (work) => {
    const scenario = textbook(10, 0.5, { work, endMs: 6_000 });
    const waits = overSeeds(scenario, randomChoice, ({ latency }) => latency.meanMs - 1);
    expect(pollaczekKhinchineWaitMs(0.5, work)).toSatisfy(within95(waits));
  });

  it('with exponential work: the p99 of M/M/1', () => {
    const p99s = overSeeds(textbook(10, 0.6), randomChoice, ({ latency }) => latency.quantileMs(0.99));
    // The time in an M/M/1 queue is exponential with mean 1 / (1 − ρ).
    expect(Math.log(100) / (1 - 0.6)).toSatisfy(within95(p99s));
  });

  it('with speeds: each in proportion to its own, at the load of the whole', () => {
    const scenario = textbook(3, 0.7, { speeds: [4, 2, 1], endMs: 20_000 });
    for (const utilisation of run(scenario, randomChoice).utilisation)
      expect(utilisation).toBeCloseTo(0.7, 1);
  });
});

describe('the worker with the least work left', () => {
  it("is one line before all: Erlang's mean wait in M/M/4", () => {
    const theory = erlangWait(4, 0.8, 1);
    const scenario = textbook(4, 0.8, { endMs: 10_000 });
    const waits = overSeeds(scenario, leastWorkLeft, ({ latency }) => latency.meanMs - 1);
    expect(theory.meanMs).toSatisfy(within95(waits));
  });
});

const leastWorkLeft: CreateChooser = ({ speeds, truth }) => ({
  choose: () =>
    speeds.reduce((best, _, worker) => (truth.backlogMs(worker) < truth.backlogMs(best) ? worker : best), 0),
});

describe('the power of two choices (Mitzenmacher 2001)', () => {
  const LOAD = 0.9;
  const scenario = textbook(200, LOAD, { endMs: 1_000, warmUpMs: 100 });
  const create = powerOfTwo('own unacknowledged');

  it('has queues as long as its fixed point s_i = λ^(2^i − 1) says', () => {
    const samples: number[] = [];
    const sampled: CreateChooser = (seat) => {
      const chooser = create(seat);
      const open = seat.speeds.map(() => 0);
      return {
        ...chooser,
        choose(predictedMs, nowMs) {
          // An arrival sees the time average; one queue of all is as good as each.
          if (nowMs > scenario.warmUpMs) samples.push(open[samples.length % open.length] ?? 0);
          return chooser.choose(predictedMs, nowMs);
        },
        dispatched(worker, ...rest) {
          open[worker] = (open[worker] ?? 0) + 1;
          chooser.dispatched?.(worker, ...rest);
        },
        acknowledged(worker, ...rest) {
          open[worker] = (open[worker] ?? 0) - 1;
          chooser.acknowledged?.(worker, ...rest);
        },
      };
    };
    run(scenario, sampled);
    for (const i of [1, 2, 3, 4]) {
      const share = samples.filter((length) => length >= i).length / samples.length;
      expect(Math.abs(share - LOAD ** (2 ** i - 1)), `s_${i}`).toBeLessThan(0.02);
    }
    // Where one choice would leave λ^6 = 53 % of the queues, two leave almost none.
    expect(samples.filter((length) => length >= 6).length / samples.length).toBeLessThan(0.003);
  });

  it('has the mean time of the fixed point, Σ λ^(2^i − 2)', () => {
    const expected = [1, 2, 3, 4, 5, 6].reduce((sum, i) => sum + LOAD ** (2 ** i - 2), 0);
    // The fixed point is the limit of many queues: 200 of them are within some per cent of it.
    expect(run(scenario, create).latency.meanMs / expected).toBeCloseTo(1, 1.3);
  });
});
