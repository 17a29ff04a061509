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
  pools: ['cpu', 'cpu-spot'],
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

  it('leave out what routers ended of requests that are not analysed', () => {
    const seen = look((windows) =>
      windows.takeRouterWindow(
        ofRouter({ sequence: 1, arms: [makeArmWindow({ analysed: false, outcomes: { EXPIRED: 4 } })] }),
      ),
    );
    expect(seen.stable.requests).toBe(0);
  });

  it('count a window of a router that comes twice once, and those that were late in every window', () => {
    const seen = look((windows) => {
      const window = ofRouter({ sequence: 1, arms: [makeArmWindow({ outcomes: { EXPIRED: 4 } })] });
      for (const each of [window, window]) windows.takeRouterWindow(each);
      for (const sequence of [1, 2])
        windows.takeWorkerWindow(ofWorker({ sequence, outcomes: { SCORED: 5 }, late: 2 }));
    });
    expect(seen.stable).toMatchObject({ requests: 14, deadlineMissed: 8 });
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

  describe('freeze τ', () => {
    let sequence = 0;
    /** So many requests of the control, each of so many ms. */
    const control = (windows: RolloutWindows, requests: number, ms: number, policyEpoch = 7): void => {
      sequence += 1;
      const endToEndSketch = sketch(...Array<number>(requests).fill(ms));
      windows.takeWorkerWindow(
        ofWorker({ sequence, policyEpoch, outcomes: { SCORED: requests }, endToEndSketch }),
      );
    };
    const overOf = (windows: RolloutWindows, epoch = 7): readonly number[] | undefined =>
      windows.observe({ ...WATCHED, epoch }, 0, 0, [])?.stable.over;

    it.each([
      ['not by 199 requests', 199, [0, 0, 0]],
      ['by 200', 200, [10, 10, 10]],
    ])('%s', (_, requests, over) => {
      const windows = watching();
      control(windows, requests, 10);
      expect(overOf(windows)).toEqual([0, 0, 0]);
      control(windows, 10, 100);
      expect(overOf(windows)).toEqual(over);
    });

    it('once: what is slow later is slow by what was usual then', () => {
      const windows = watching();
      control(windows, 200, 10);
      overOf(windows);
      for (let window = 0; window < 4; window += 1) {
        control(windows, 1_000, 100);
        expect(overOf(windows)).toEqual([1_000, 1_000, 1_000]);
      }
    });

    it('for each stage anew, and by its own requests', () => {
      const windows = watching();
      control(windows, 200, 10);
      overOf(windows);
      overOf(windows, 8);
      control(windows, 150, 100, 8);
      expect(overOf(windows, 8)).toEqual([0, 0, 0]);
      overOf(windows, 9);
      control(windows, 100, 100, 9);
      overOf(windows, 9);
      control(windows, 100, 500, 9);
      expect(overOf(windows, 9)).toEqual([0, 0, 0]);
    });
  });

  it.each([
    ['another epoch', { epoch: 8 }],
    ['another candidate', { candidateDigest: 'sha256:d' }],
    ['another policy', { policy: 'other' }],
  ])('begin anew with %s', (_, change) => {
    const windows = watching();
    expect(windows.observe({ ...WATCHED, ...change }, 10_000, 0, [])).toBeUndefined();
    expect(windows.observe({ ...WATCHED, ...change }, 20_000, 0, [])).toBeDefined();
  });

  it('tell of each window by itself: pools and shadow too', () => {
    const windows = watching();
    const first = look((each) => {
      each.takeStatus(status('a', { utilisation: 0.5 }), 9_000);
      each.takeRouterWindow(
        ofRouter({
          sequence: 1,
          shadow: [makeLeafDivergence({ leaf: 'x', requests: 3, changed: 0, latencyRatioOver: 0 })],
        }),
      );
    }, windows);
    expect([first.shadow?.requests, Object.keys(first.pools)]).toEqual([3, ['cpu']]);
    const second = look(() => undefined, windows, 20_000);
    expect([second.shadow, second.pools]).toEqual([undefined, {}]);
  });

  it('begin anew with another stage: nothing of the one before is in it', () => {
    const windows = watching();
    windows.takeWorkerWindow(ofWorker({ sequence: 1, outcomes: { SCORED: 5 } }));
    expect(windows.observe({ ...WATCHED, epoch: 8 }, 10_000, 0, [])).toBeUndefined();
    windows.takeWorkerWindow(ofWorker({ sequence: 2, outcomes: { SCORED: 5 } }));
    windows.takeWorkerWindow(ofWorker({ sequence: 3, policyEpoch: 8, outcomes: { SCORED: 7 } }));
    expect(windows.observe({ ...WATCHED, epoch: 8 }, 20_000, 0, [])?.stable.requests).toBe(7);
  });

  it('merge what routers saw in shadow; parts of a pool add up over the routers, the mean of each', () => {
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
        [1, 'a#1', 0.4],
        [2, 'a#1', 0.1],
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
    ['another pool that the policies name', status('b', { pool: 'cpu-spot' }), true],
    ['a pool that they do not name', status('b', { pool: 'gpu' }), false],
    ['a version that the policies name, ready', published('3', 'READY'), true],
    ['one that is still loading', published('3', 'LOADING'), false],
    ['a version that they do not name', published('4', 'READY'), false],
    ['another backend', status('b', { backend: 'simulated' }), true],
  ])('have another fingerprint with %s: %s', (_, second, changes) => {
    const alone = look((windows) => windows.takeStatus(status('a'), 9_900)).fingerprint;
    const both = look((windows) => {
      windows.takeStatus(status('a'), 9_900);
      windows.takeStatus(second, 9_900);
    }).fingerprint;
    expect(both !== alone).toBe(changes);
  });

  it('have another fingerprint with another set of pools that the policies name, also where nobody was heard in them', () => {
    const fingerprintOf = (pools: readonly string[]): string | undefined => {
      const windows = new RolloutWindows((text) => text);
      windows.observe({ ...WATCHED, pools }, 0, 0, []);
      windows.takeStatus(status('a'), 9_900);
      return windows.observe({ ...WATCHED, pools }, 10_000, 10_000, [])?.fingerprint;
    };
    expect(fingerprintOf(['cpu', 'cpu-spot'])).toBe(fingerprintOf(['cpu-spot', 'cpu']));
    expect(fingerprintOf(['cpu', 'cpu-spot'])).not.toBe(fingerprintOf(['cpu']));
  });

  it('have the same fingerprint in whatever order workers are heard', () => {
    const builds = [status('a', { build: '1' }), status('b', { build: '2' })];
    const [one, other] = [builds, builds.toReversed()].map(
      (order) =>
        look((windows) => {
          for (const each of order) windows.takeStatus(each, 9_900);
        }).fingerprint,
    );
    expect(one).toBe(other);
  });

  it('have no fingerprint while no worker was heard of', () => {
    const gone = look((windows) => {
      windows.takeStatus(status('a'), 9_900);
      windows.workerGone('a');
    });
    const silent = look((windows) => windows.takeStatus(status('a'), 1_000));
    expect([gone.fingerprint, silent.fingerprint]).toEqual(['', '']);
  });

  describe('keep their fingerprint', () => {
    const heard = (...workers: PoolStatus[]) => {
      const windows = watching();
      const at = (nowMs: number, live: readonly PoolStatus[], watched = WATCHED) => {
        for (const each of live) windows.takeStatus(each, nowMs - 100);
        return windows.observe(watched, nowMs, nowMs, [])?.fingerprint;
      };
      return { windows, at, before: at(10_000, workers) };
    };

    it('when a pool is scaled to zero, and back', () => {
      const spot = status('b', { pool: 'cpu-spot', build: '2' });
      const { at, before } = heard(status('a'), spot);
      expect([at(20_000, [status('a')]), at(30_000, [status('a'), spot])]).toEqual([before, before]);
    });

    it('when the only worker restarts, in another stage too', () => {
      const { windows, at, before } = heard(status('a'));
      windows.workerGone('a');
      const next = { ...WATCHED, epoch: 8 };
      expect(at(20_000, [], next)).toBeUndefined();
      expect([at(30_000, [], next), at(40_000, [status('a', { incarnation: '2' })], next)]).toEqual([
        before,
        before,
      ]);
    });

    it('while a worker that restarted loads the published version again', () => {
      const { at, before } = heard(status('a'), published('3', 'READY'));
      expect(at(20_000, [published('3', 'LOADING')])).toBe(before);
    });

    it('not when a pool that was empty has another build', () => {
      const { at, before } = heard(status('a'));
      at(20_000, []);
      expect(at(30_000, [status('a', { build: '2' })])).not.toBe(before);
    });
  });
});
