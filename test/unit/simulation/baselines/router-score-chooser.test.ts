import { beforeAll, describe, expect, it } from 'vitest';
import { SCORE_RULES } from '../../../../src/core/routing/router-score.ts';
import { leastUnacknowledged } from '../../../../src/simulation/baselines/least-unacknowledged.ts';
import { omniscientGreedy } from '../../../../src/simulation/baselines/omniscient-greedy.ts';
import { weightedRoundRobin } from '../../../../src/simulation/baselines/round-robin.ts';
import { routerScore } from '../../../../src/simulation/baselines/router-score-chooser.ts';
import { shortestExpectedWait } from '../../../../src/simulation/baselines/shortest-expected-wait.ts';
import type { CreateChooser } from '../../../../src/simulation/routing/chooser.ts';
import type { Change, RoutingScenario } from '../../../../src/simulation/routing/scenario.ts';
import { run, small } from '../routing/scenario.fixture.ts';

/** As in the benchmark `scheduling`, but shorter. */
function installation(more: Partial<RoutingScenario> = {}): RoutingScenario {
  return small({
    routers: 4,
    speeds: [4, 2, 1].flatMap((speed) => Array.from({ length: 10 }, () => speed)),
    load: 0.8,
    work: { kind: 'lognormal', mean: 10, sigma: 1 },
    statusPeriodMs: 200,
    warmUpMs: 1_000,
    endMs: 3_500,
    ...more,
  });
}

function p99(create: CreateChooser, scenario: RoutingScenario): number {
  return run(scenario, create).latency.quantileMs(0.99);
}

describe("the router's score", () => {
  const usual = installation();
  let usualP99 = Number.NaN;
  beforeAll(() => {
    usualP99 = p99(routerScore(), usual);
  });

  it.each([
    ['weighted round robin', weightedRoundRobin, 0.35],
    ['least own unacknowledged', leastUnacknowledged, 0.7],
    ['shortest expected wait', shortestExpectedWait, 0.85],
    ['an omniscient greedy', omniscientGreedy, 1.6],
  ] as const)('has a p99 well below that of %s, or near it', (_name, create, ratio) => {
    expect(usualP99).toBeLessThan(ratio * p99(create, usual));
  });

  it('herds where the worker of another router is as good as its own', () => {
    const careless = routerScore({ ...SCORE_RULES, foreignPenaltyServices: 0 });
    expect(p99(careless, usual)).toBeGreaterThan(1.3 * usualP99);
  });

  it('spills where routers are uneven, which hard ownership does not', () => {
    const uneven = installation({ routerShares: [4, 2, 1, 1] });
    const hard = routerScore({ ...SCORE_RULES, foreignPenaltyServices: 1e6 });
    expect(p99(hard, uneven)).toBeGreaterThan(5 * p99(routerScore(), uneven));
  });

  it('leaves a worker that turns slow in silence', () => {
    const changes: Change[] = [{ atMs: 1_000, kind: 'slow', worker: 0, factor: 1 / 8 }];
    const slow = installation({ changes });
    expect(p99(routerScore(), slow)).toBeLessThan(2 * usualP99);
    expect(p99(weightedRoundRobin, slow)).toBeGreaterThan(5 * p99(weightedRoundRobin, usual));
  });

  it("deals a dead router's workers anew", () => {
    const dead = installation({ changes: [{ atMs: 1_000, kind: 'router-dies', router: 3 }] });
    const notDealt: CreateChooser = (seat) => {
      const chooser = routerScore()(seat);
      return {
        ...chooser,
        membersChanged(members, nowMs) {
          if (nowMs === 0) chooser.membersChanged?.(members, nowMs);
        },
      };
    };
    expect(p99(routerScore(), dead)).toBeLessThan(0.8 * p99(notDealt, dead));
  });
});
