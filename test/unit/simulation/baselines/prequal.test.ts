import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import {
  PREQUAL,
  type PrequalSettings,
  prequal,
  usesOf,
} from '../../../../src/simulation/baselines/prequal.ts';
import type { Chooser } from '../../../../src/simulation/routing/chooser.ts';

function chooserWith(settings: Partial<PrequalSettings>): { chooser: Chooser; probed: number[] } {
  const probed: number[] = [];
  const truth = { workMs: () => 1, backlogMs: () => 0, speed: () => 1 };
  const seat = {
    router: 0,
    speeds: Array.from({ length: 100 }, () => 1),
    random: seededRandom(1).stream('prequal'),
    probe: (worker: number) => probed.push(worker),
    truth,
  };
  return { chooser: prequal({ ...PREQUAL, ...settings })(seat), probed };
}

/** Probes' answers as [worker, requests in flight, latency]; those come after twenty cold ones that are too old to be chosen. */
function choiceOf(
  answers: readonly (readonly [number, number, number])[],
  settings: Partial<PrequalSettings> = {},
): number {
  const { chooser } = chooserWith({ removedPerRequest: 0, ...settings });
  for (const [worker, requestsInFlight, latencyMs] of answers)
    chooser.probed?.(worker, { requestsInFlight, latencyMs }, 0);
  return chooser.choose(1, 0);
}

describe('hot-cold lexicographic', () => {
  it.each([
    {
      what: 'the lowest latency of the cold',
      answers: [
        [1, 1, 9],
        [2, 2, 3],
        [3, 9, 1],
        [4, 2, 5],
      ],
      chosen: 2,
    },
    {
      what: 'the fewest in flight where latencies would say another, all being hot but it',
      answers: [
        [1, 7, 9],
        [2, 8, 3],
      ],
      chosen: 1,
    },
    {
      what: 'a cold one, however slow, before a hot one',
      answers: [
        [1, 5, 1],
        [2, 0, 99],
        [3, 6, 1],
      ],
      chosen: 2,
    },
  ] as const)('chooses $what', ({ answers, chosen }) => {
    const settings = { hotQuantile: answers.length === 4 ? 0.7 : 0 };
    expect(choiceOf(answers, settings)).toBe(chosen);
  });
});

describe('the pool of probes', () => {
  it('sends three probes a request, to different workers', () => {
    const { chooser, probed } = chooserWith({});
    for (let request = 0; request < 10; request++) chooser.choose(1, 0);
    expect(probed.length).toBe(30);
    for (let request = 0; request < 10; request++)
      expect(new Set(probed.slice(request * 3, request * 3 + 3)).size).toBe(3);
  });

  it('uses a probe max(1, (1 + δ) / ((1 − m/n) r_probe − r_remove)) times', () => {
    expect(usesOf(PREQUAL, 100)).toBeCloseTo(2 / (0.84 * 3 - 1));
    expect(usesOf({ ...PREQUAL, probesPerRequest: 10 }, 100)).toBe(1);
    expect(usesOf(PREQUAL, 20)).toBe(Number.POSITIVE_INFINITY);
  });

  it('forgets probes after a second, and then draws at random', () => {
    const { chooser } = chooserWith({});
    for (const worker of [1, 2, 3]) chooser.probed?.(worker, { requestsInFlight: 0, latencyMs: worker }, 0);
    const later = Array.from({ length: 30 }, () => chooser.choose(1, 1_001));
    expect(new Set(later).size).toBeGreaterThan(10);
  });

  it('counts its own use into the probe: the next request goes elsewhere', () => {
    const { chooser } = chooserWith({ hotQuantile: 0, removedPerRequest: 0, delta: 9 });
    chooser.probed?.(1, { requestsInFlight: 0, latencyMs: 1 }, 0);
    chooser.probed?.(2, { requestsInFlight: 0, latencyMs: 2 }, 0);
    chooser.probed?.(3, { requestsInFlight: 0, latencyMs: 3 }, 0);
    expect([0, 0, 0].map(() => chooser.choose(1, 0))).toEqual([1, 2, 3]);
  });

  it('removes the oldest and the worst in turns', () => {
    const { chooser } = chooserWith({ delta: 99, hotQuantile: 1 });
    for (const [worker, latencyMs] of [5, 1, 9, 2, 3].entries())
      chooser.probed?.(worker, { requestsInFlight: worker === 0 ? 50 : 0, latencyMs }, worker);
    // Out go 0 (the oldest), 2 (the slowest), 1 (the oldest that is left).
    expect([0, 0, 0, 0].map(() => chooser.choose(1, 10))).toEqual([1, 1, 1, 3]);
  });
});
