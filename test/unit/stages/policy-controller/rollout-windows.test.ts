import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  makeArmWindow,
  makeHeadWindow,
  makeLeafDivergence,
  makeModelServed,
  makePoolStatus,
  makePublishedVersion,
  makeRouterWindow,
  makeWorkerWindow,
  type PoolStatus,
} from '../../../../src/contracts/records.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import type { Observation } from '../../../../src/core/rollout/observation.ts';
import { scoreBin } from '../../../../src/core/scores/score-bin.ts';
import { ScoreHistogram } from '../../../../src/core/scores/score-histogram.ts';
import { RolloutWindows, type Watched } from '../../../../src/stages/policy-controller/rollout-windows.ts';

function published(version: string, state: 'READY' | 'LOADING'): PoolStatus {
  return status('b', { published: [makePublishedVersion({ family: 'ranker', version, status: state })] });
}

const WATCHED: Watched = {
  policy: 'feed',
  epoch: 7,
  candidateDigest: 'sha256:c',
  models: ['ranker@3'],
  scoreEdges: {},
};

type WorkerFields = Parameters<typeof makeWorkerWindow>[0];
type RouterFields = Parameters<typeof makeRouterWindow>[0];

function sketch(...values: number[]): Buffer {
  const made = new LatencySketch();
  for (const value of values) made.add(value);
  return made.toBytes();
}

function ofWorker(fields: Partial<WorkerFields> & { sequence: number }) {
  return makeWorkerWindow({
    worker: 'w',
    incarnation: '1',
    windowStartMs: 0,
    windowMs: 1_000,
    pool: 'cpu',
    kernel: 'dense',
    memory: 'host',
    model: 'ranker',
    modelVersion: '1',
    policy: 'feed',
    policyEpoch: 7,
    ...fields,
  });
}

function ofRouter(fields: Partial<RouterFields> & { sequence: number }) {
  return makeRouterWindow({
    router: 'r#1',
    windowStartMs: 0,
    windowMs: 1_000,
    policyDigest: 'sha256:s',
    policyEpoch: 7,
    candidateDigest: 'sha256:c',
    ...fields,
  });
}

function status(worker: string, fields: Partial<Parameters<typeof makePoolStatus>[0]> = {}) {
  return makePoolStatus({
    pool: 'cpu',
    capacityClass: 'DEDICATED',
    worker,
    incarnation: '1',
    accelerator: 'cpu',
    backend: 'onnx-cpu',
    models: [makeModelServed({ family: 'ranker', version: '1', variant: 'BASELINE' })],
    build: '1.0.0',
    ...fields,
  });
}

/** Watches, feeds, looks 10 s later. */
function look(feed: (windows: RolloutWindows) => void, windows = watching(), nowMs = 10_000): Observation {
  feed(windows);
  const observation = windows.observe(WATCHED, nowMs, 1_000_000 + nowMs, []);
  if (observation === undefined) throw new Error('nothing was observed');
  return observation;
}

function watching(): RolloutWindows {
  const windows = new RolloutWindows((text) => text);
  expect(windows.observe(WATCHED, 0, 1_000_000, [])).toBeUndefined();
  return windows;
}

describe('the windows of a rollout', () => {
  it('add up the terminal outcomes of each arm, of workers and of routers', () => {
    const seen = look((windows) => {
      windows.takeWorkerWindow(
        ofWorker({ sequence: 1, arm: 'CANARY', outcomes: { SCORED: 40, DEGRADED: 3, EXPIRED: 2 }, late: 5 }),
      );
      windows.takeWorkerWindow(ofWorker({ sequence: 2, outcomes: { SCORED: 900, DEAD_LETTERED: 1 } }));
      windows.takeRouterWindow(
        ofRouter({
          sequence: 1,
          arms: [
            makeArmWindow({ arm: 'CANARY', outcomes: { EXPIRED: 4, REJECTED: 1 } }),
            makeArmWindow({ arm: 'STABLE', outcomes: { EXPIRED: 6 } }),
          ],
        }),
      );
    });
    expect(seen.canary).toEqual({
      requests: 50,
      errors: 4,
      deadLettered: 0,
      deadlineMissed: 11,
      over: [0, 0, 0],
    });
    expect(seen.stable).toMatchObject({ requests: 907, errors: 0, deadLettered: 1, deadlineMissed: 6 });
    expect(seen).toMatchObject({ atMs: 1_010_000, windowMs: 10_000, shadow: undefined });
  });

  it.each([
    ['of another epoch', { policyEpoch: 6 }],
    ['of another policy', { policy: 'other' }],
    ['that are not analysed', { analysed: false }],
  ])('leave out requests %s', (_, fields) => {
    const seen = look((windows) =>
      windows.takeWorkerWindow(ofWorker({ sequence: 1, outcomes: { SCORED: 5 }, ...fields })),
    );
    expect(seen.stable.requests).toBe(0);
  });

  it('leave out a router that has another candidate, or another epoch', () => {
    const arms = [makeArmWindow({ outcomes: { EXPIRED: 4 } })];
    const seen = look((windows) => {
      windows.takeRouterWindow(ofRouter({ sequence: 1, arms, candidateDigest: null }));
      windows.takeRouterWindow(ofRouter({ sequence: 2, arms, policyEpoch: 8 }));
    });
    expect(seen.stable.requests).toBe(0);
  });

  it('count each window once, in whatever order and however often they come', () => {
    const all = [1, 2, 3, 4, 5].map((sequence) =>
      ofWorker({ sequence, outcomes: { SCORED: 10 ** sequence } }),
    );
    fc.assert(
      fc.property(fc.shuffledSubarray([...all, ...all], { minLength: 10 }), (arriving) => {
        const seen = look((windows) => {
          for (const window of arriving) windows.takeWorkerWindow(window);
        });
        expect(seen.stable.requests).toBe(111_110);
      }),
    );
  });

  it('take a worker that started anew for another one', () => {
    const seen = look((windows) => {
      windows.takeWorkerWindow(ofWorker({ sequence: 1, outcomes: { SCORED: 1 } }));
      windows.takeWorkerWindow(ofWorker({ sequence: 1, incarnation: '2', outcomes: { SCORED: 1 } }));
    });
    expect(seen.stable.requests).toBe(2);
  });

  it('freeze τ by the control of the windows before, and count over it from then on', () => {
    const windows = watching();
    const control = [...Array(1_000).keys()].map((n) => n / 10);
    const feed = (sequence: number) => () => {
      windows.takeWorkerWindow(
        ofWorker({ sequence, outcomes: { SCORED: 1_000 }, endToEndSketch: sketch(...control) }),
      );
      windows.takeWorkerWindow(
        ofWorker({
          sequence: sequence + 1,
          arm: 'CANARY',
          outcomes: { SCORED: 3 },
          endToEndSketch: sketch(10, 60, 200),
        }),
      );
    };
    const first = look(feed(1), windows);
    expect(first.canary.over).toEqual([0, 0, 0]);
    expect(first.stableLatencyMs?.[0]).toBeCloseTo(50, -0.5);
    const second = look(feed(3), windows, 20_000);
    expect(second.canary.over).toEqual([2, 1, 1]);
    expect(second.stable.over[0]).toBeGreaterThan(450);
    expect(second.stable.over[0]).toBeLessThan(550);
  });

  it('have the scores of both arms, once, and of this epoch alone', () => {
    const watched: Watched = { ...WATCHED, scoreEdges: { 'ranker/ctr': [scoreBin(0.5)] } };
    const windows = new RolloutWindows((text) => text);
    windows.observe(watched, 0, 1_000_000, []);
    const heads = (group: number, value: number) => {
      const histogram = new ScoreHistogram();
      histogram.add(value);
      const sample = {
        group,
        count: 1,
        sum: value,
        sumOfSquares: value ** 2,
        histogram: histogram.toBytes(),
      };
      return [makeHeadWindow({ name: 'ctr', count: 1, mean: value, histogram: [], samples: [sample] })];
    };
    const stable = ofWorker({ sequence: 1, heads: heads(0, 0.25) });
    const canary = ofWorker({ sequence: 2, arm: 'CANARY', heads: heads(1, 0.75) });
    const others = [
      ofWorker({ sequence: 3, policyEpoch: 6, heads: heads(2, 0.75) }),
      ofWorker({ sequence: 4, policy: 'other', heads: heads(2, 0.75) }),
      ofWorker({ sequence: 5, analysed: false, heads: heads(2, 0.75) }),
    ];
    for (const window of [stable, canary, stable, ...others, canary]) windows.takeWorkerWindow(window);
    const seen = windows.observe(watched, 10_000, 1_010_000, [])?.scores['ranker/ctr'];
    expect(seen?.edges).toEqual([scoreBin(0.5)]);
    const binsOf = (groups: readonly { bins: readonly number[] }[] = []) => groups.map(({ bins }) => bins);
    const none = [0, 0];
    expect(binsOf(seen?.stable)).toEqual([[1, 0], none, none, none, none, none, none, none]);
    expect(binsOf(seen?.candidate)).toEqual([none, [0, 1], none, none, none, none, none, none]);
  });

  it('have the scores of a version in shadow as the candidate’s, and nothing else of it', () => {
    const watched: Watched = { ...WATCHED, scoreEdges: { 'ranker/ctr': [scoreBin(0.5)] } };
    const windows = new RolloutWindows((text) => text);
    windows.observe(watched, 0, 1_000_000, []);
    const histogram = new ScoreHistogram();
    histogram.add(0.75);
    const sample = { group: 3, count: 1, sum: 0.75, sumOfSquares: 0.5625, histogram: histogram.toBytes() };
    const heads = [makeHeadWindow({ name: 'ctr', count: 1, mean: 0.75, histogram: [], samples: [sample] })];
    const shadow = { arm: 'CANARY', analysed: false, shadow: true, heads } as const;
    windows.takeWorkerWindow(ofWorker({ sequence: 1, ...shadow, computeSketch: sketch(5) }));
    windows.takeWorkerWindow(ofWorker({ sequence: 2, ...shadow, policyEpoch: 6 }));
    const seen = windows.observe(watched, 10_000, 1_010_000, []);
    const counts = seen?.scores['ranker/ctr']?.candidate.map(({ bins }) => bins[1]);
    expect(counts).toEqual([0, 0, 0, 1, 0, 0, 0, 0]);
    expect(seen?.canary).toEqual({
      requests: 0,
      errors: 0,
      deadLettered: 0,
      deadlineMissed: 0,
      over: [0, 0, 0],
    });
  });

  it('begin anew with another stage: nothing of the one before is in it', () => {
    const windows = watching();
    windows.takeWorkerWindow(ofWorker({ sequence: 1, outcomes: { SCORED: 5 } }));
    expect(windows.observe({ ...WATCHED, epoch: 8 }, 10_000, 0, [])).toBeUndefined();
    windows.takeWorkerWindow(ofWorker({ sequence: 2, outcomes: { SCORED: 5 } }));
    windows.takeWorkerWindow(ofWorker({ sequence: 3, policyEpoch: 8, outcomes: { SCORED: 7 } }));
    expect(windows.observe({ ...WATCHED, epoch: 8 }, 20_000, 0, [])?.stable.requests).toBe(7);
  });

  it('merge what routers saw in shadow; parts of a pool add up over the routers, the newest of each', () => {
    const shadow = [
      makeLeafDivergence({
        leaf: 'rest',
        requests: 100,
        changed: 10,
        latencyRatioOver: 9,
        changedUndeclared: 4,
        latencyRatioOverUndeclared: 3,
      }),
    ];
    const seen = look((windows) => {
      for (const [sequence, router, share] of [
        [1, 'a#1', 0.9],
        [2, 'a#1', 0.25],
        [1, 'b#1', 0.5],
      ] as const) {
        windows.takeRouterWindow(
          ofRouter({
            sequence,
            router,
            shadow,
            shadowExceptions: 1,
            shadowCostSketch: sketch(5),
            shadowLeaves: { fpga: 10, rest: 90 },
            projectedUtilisation: { cpu: share },
          }),
        );
      }
    });
    expect(seen.shadow).toMatchObject({
      requests: 300,
      changed: 30,
      changedOutsideDeclared: 12,
      latencyApart: 9,
      exceptions: 3,
      leaves: { fpga: 30, rest: 270 },
      projectedUtilisation: { cpu: 0.75 },
    });
    expect(seen.shadow?.costUsP99).toBeCloseTo(5, 0);
  });

  it('tell how busy the pools are, and how long requests queue in them', () => {
    const seen = look((windows) => {
      windows.takeStatus(status('a', { utilisation: 0.2 }), 9_000);
      windows.takeStatus(status('b', { utilisation: 0.6 }), 9_500);
      windows.takeWorkerWindow(ofWorker({ sequence: 1, policy: 'other', queueSketch: sketch(8) }));
    });
    expect(seen.pools['cpu']?.utilisation).toBeCloseTo(0.4);
    expect(seen.pools['cpu']?.queueMsP99).toBeCloseTo(8, 0);
  });

  it.each([
    ['a worker more of the same', status('b'), false],
    ['another build', status('b', { build: '1.0.1' }), true],
    [
      'another model version',
      status('b', { models: [makeModelServed({ family: 'ranker', version: '2', variant: 'BASELINE' })] }),
      true,
    ],
    ['another pool', status('b', { pool: 'gpu' }), true],
    ['a version that the policies name, ready', published('3', 'READY'), true],
    ['one that is still loading', published('3', 'LOADING'), false],
    ['a version that they do not name', published('4', 'READY'), false],
  ])('have another fingerprint with %s: %s', (_, second, changes) => {
    const alone = look((windows) => windows.takeStatus(status('a'), 9_900)).fingerprint;
    const both = look((windows) => {
      windows.takeStatus(status('a'), 9_900);
      windows.takeStatus(second, 9_900);
    }).fingerprint;
    expect(both !== alone).toBe(changes);
  });

  it('forget a worker that is gone, or silent', () => {
    const gone = look((windows) => {
      windows.takeStatus(status('a'), 9_900);
      windows.workerGone('a');
    });
    const silent = look((windows) => windows.takeStatus(status('a'), 1_000));
    expect([gone.fingerprint, silent.fingerprint]).toEqual(['', '']);
  });
});
