import { describe, expect, it } from 'vitest';
import { leastLoaded } from '../../../../src/simulation/baselines/least-loaded.ts';
import { leastUnacknowledged } from '../../../../src/simulation/baselines/least-unacknowledged.ts';
import { omniscientGreedy } from '../../../../src/simulation/baselines/omniscient-greedy.ts';
import { powerOfTwo } from '../../../../src/simulation/baselines/power-of-two.ts';
import { PREQUAL, prequal } from '../../../../src/simulation/baselines/prequal.ts';
import { randomChoice } from '../../../../src/simulation/baselines/random-choice.ts';
import { weightedRoundRobin } from '../../../../src/simulation/baselines/round-robin.ts';
import { shortestExpectedWait } from '../../../../src/simulation/baselines/shortest-expected-wait.ts';
import type { CreateChooser } from '../../../../src/simulation/routing/chooser.ts';
import type { RoutingScenario } from '../../../../src/simulation/routing/scenario.ts';
import { run, small, textbook } from '../routing/scenario.fixture.ts';

function chosenBy(create: CreateChooser, scenario: RoutingScenario): number[] {
  const chosen: number[] = [];
  run(scenario, (seat) => {
    const chooser = create(seat);
    return {
      ...bound(chooser),
      choose(predictedMs, nowMs) {
        const worker = chooser.choose(predictedMs, nowMs);
        chosen.push(worker);
        return worker;
      },
    };
  });
  return chosen;
}

function bound(chooser: ReturnType<CreateChooser>): ReturnType<CreateChooser> {
  return {
    choose: (...args) => chooser.choose(...args),
    dispatched: (...args) => chooser.dispatched?.(...args),
    acknowledged: (...args) => chooser.acknowledged?.(...args),
    heard: (...args) => chooser.heard?.(...args),
    probed: (...args) => chooser.probed?.(...args),
    membersChanged: (...args) => chooser.membersChanged?.(...args),
  };
}

function p99(create: CreateChooser, scenario: RoutingScenario): number {
  return run(scenario, create).latency.quantileMs(0.99);
}

const ALL: readonly (readonly [string, CreateChooser])[] = [
  ['random', randomChoice],
  ['weighted round robin', weightedRoundRobin],
  ['least loaded', leastLoaded],
  ['least unacknowledged', leastUnacknowledged],
  ['power of two', powerOfTwo('status and own dispatches')],
  ['power of two of own', powerOfTwo('own unacknowledged')],
  ['shortest expected wait', shortestExpectedWait],
  ['Prequal', prequal()],
  ['omniscient', omniscientGreedy],
];

describe.each(ALL)('%s', (_name, create) => {
  it('chooses nobody that is not there', () => {
    const changes = [
      { atMs: 0, kind: 'drain', worker: 0 } as const,
      { atMs: 400, kind: 'join', worker: 2 } as const,
    ];
    const chosen = chosenBy(create, small({ changes }));
    expect(chosen).not.toContain(0);
    expect(chosen).toContain(1);
    expect(chosen).toContain(2);
  });
});

describe('weighted round robin', () => {
  it('gives each its weight in every round, the heavy one not in a row (nginx 2012: a a b a c a a)', () => {
    const chosen = chosenBy(
      weightedRoundRobin,
      textbook(3, 0.5, { speeds: [5, 1, 1], warmUpMs: 0, endMs: 30 }),
    );
    for (let first = 0; first + 7 <= chosen.length; first += 7) {
      const round = chosen.slice(first, first + 7);
      expect(round.filter((worker) => worker === 0).length).toBe(5);
      expect(round.filter((worker) => worker === 1).length).toBe(1);
    }
    expect(chosen.join('')).not.toContain('0000000');
  });

  it('waits less than random: it evens the arrivals of each worker', () => {
    const scenario = textbook(10, 0.8);
    expect(p99(weightedRoundRobin, scenario)).toBeLessThan(0.9 * p99(randomChoice, scenario));
  });
});

describe('least loaded by status', () => {
  it('herds: worse than random with old news, better with fresh (Mitzenmacher 2000)', () => {
    const of = (statusPeriodMs: number) => textbook(10, 0.8, { statusPeriodMs });
    expect(p99(leastLoaded, of(100))).toBeGreaterThan(3 * p99(randomChoice, of(100)));
    expect(p99(leastLoaded, of(0.05))).toBeLessThan(0.5 * p99(randomChoice, of(0.05)));
  });
});

describe('least unacknowledged', () => {
  it('is join the shortest queue for one router: near Erlang, far below two choices', () => {
    const scenario = textbook(10, 0.9);
    expect(p99(leastUnacknowledged, scenario)).toBeLessThan(
      0.8 * p99(powerOfTwo('own unacknowledged'), scenario),
    );
  });

  it('loses by each further router, of whose requests it knows nothing', () => {
    const [one, eight] = [1, 8].map((routers) => p99(leastUnacknowledged, textbook(10, 0.9, { routers })));
    expect(eight).toBeGreaterThan(1.3 * (one ?? 0));
  });
});

describe('power of two', () => {
  it('has an exponentially shorter tail than one choice (Mitzenmacher 2001)', () => {
    const scenario = textbook(50, 0.9, { endMs: 2_000 });
    expect(p99(powerOfTwo('own unacknowledged'), scenario)).toBeLessThan(0.45 * p99(randomChoice, scenario));
  });

  it('keeps its own dispatches in view between two heartbeats', () => {
    const scenario = textbook(10, 0.8, { statusPeriodMs: 50 });
    expect(p99(powerOfTwo('status and own dispatches'), scenario)).toBeLessThan(
      0.5 * p99(leastLoaded, scenario),
    );
  });
});

describe('shortest expected wait', () => {
  it('leaves slow workers idle while fast ones are, at low load (Banawan and Zahorjan 1989)', () => {
    const chosen = chosenBy(shortestExpectedWait, textbook(2, 0.05, { speeds: [8, 1], endMs: 3_000 }));
    expect(chosen.filter((worker) => worker === 0).length / chosen.length).toBeGreaterThan(0.9);
  });

  it('knows the work of requests: below the shortest queue', () => {
    const scenario = textbook(10, 0.8, { work: { kind: 'lognormal', mean: 1, sigma: 1.5 } });
    expect(p99(shortestExpectedWait, scenario)).toBeLessThan(p99(leastUnacknowledged, scenario));
  });
});

describe('Prequal', () => {
  it('beats weighted round robin where workers are unequal to what they declare', () => {
    const changes = [0, 1, 2].map((worker) => ({ atMs: 0, kind: 'slow', worker, factor: 0.5 }) as const);
    const scenario = textbook(30, 0.7, { routers: 4, changes, endMs: 1_500 });
    expect(p99(prequal(), scenario)).toBeLessThan(0.5 * p99(weightedRoundRobin, scenario));
  });

  it('is published at Q_RIF = 2^-0.25, 3 probes a request, a pool of 16 and 1 s', () => {
    expect(PREQUAL.hotQuantile).toBeCloseTo(0.84, 2);
    expect(PREQUAL).toMatchObject({
      probesPerRequest: 3,
      removedPerRequest: 1,
      poolMax: 16,
      ageMaxMs: 1_000,
      delta: 1,
    });
  });
});

describe('the omniscient greedy', () => {
  it.each(ALL.filter(([name]) => name !== 'omniscient'))('is below %s', (_name, create) => {
    const scenario = textbook(9, 0.8, {
      routers: 2,
      speeds: [4, 4, 4, 2, 2, 2, 1, 1, 1],
      work: { kind: 'lognormal', mean: 1, sigma: 1 },
      endMs: 2_000,
    });
    expect(p99(omniscientGreedy, scenario)).toBeLessThan(p99(create, scenario));
  });
});
