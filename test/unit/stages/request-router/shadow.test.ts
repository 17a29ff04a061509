import { describe, expect, it } from 'vitest';
import { makePublishedVersion } from '../../../../src/contracts/records.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import type { ActivePolicy } from '../../../../src/stages/request-router/active-policy.ts';
import {
  ack,
  CANDIDATE_TREE,
  canary,
  dispatchOf,
  policy,
  startRouter,
  status,
  TREE,
} from './router.fixture.ts';

const GPU = status({ pool: 'gpu', accelerator: 'gpu-a100', worker: 'g1', memories: ['hbm'], speed: 4 });

function startShadow(candidate: ActivePolicy = policy(CANDIDATE_TREE, 2)) {
  const world = startRouter({
    canary: canary({ mode: 'shadow', policy: candidate }),
    config: { creditsMax: 1_000 },
  });
  world.router.onStatus(status({ batchRequests: 1_000 }));
  world.router.onStatus({ ...GPU, batchRequests: 1_000 });
  const take = () => {
    const taken = world.router.takeShadow();
    if (taken === undefined) throw new Error('there is no shadow');
    return taken;
  };
  return { ...world, take };
}

describe('a model version in shadow', () => {
  const naming = (version: string): ActivePolicy => policy(TREE, 2, `models: {ranker: ${version}}`);
  const published = [makePublishedVersion({ family: 'ranker', version: '3', status: 'READY' })];
  const shadowed = (candidate: ActivePolicy, fields: { modelVersion?: string } = {}): (string | null)[] => {
    const { router, route } = startShadow(candidate);
    router.onStatus(status({ sequence: 2, batchRequests: 1_000, published }));
    return Array.from({ length: 8 }, () => dispatchOf(route(fields)).shadowVersion);
  };

  it('scores every fourth request once more, where the worker has it', () => {
    expect(shadowed(naming('3'))).toEqual([null, null, null, '3', null, null, null, '3']);
  });

  it.each([
    ['a version that the worker has not', naming('4'), {}],
    ['the version that answers anyway', naming('1'), {}],
    ['requests that pin their version', naming('3'), { modelVersion: '1' }],
    ['a candidate that names none', policy(TREE, 2), {}],
  ])('is none for %s', (_what, candidate, fields) => {
    expect(shadowed(candidate, fields)).toEqual(new Array(8).fill(null));
  });

  it('is none once the candidate acts', () => {
    const world = startRouter({
      canary: canary({ mode: 'canary', percent: 0, policy: naming('3') }),
      config: { creditsMax: 1_000 },
    });
    world.router.onStatus(status({ batchRequests: 1_000, published }));
    const versions = Array.from({ length: 8 }, () => dispatchOf(world.route()).shadowVersion);
    expect(versions).toEqual(new Array(8).fill(null));
  });
});

describe('a candidate in shadow', () => {
  it('acts on nothing', () => {
    const { route } = startShadow();
    expect(dispatchOf(route())).toMatchObject({
      pool: 'cpu',
      policy: { leaf: 'rest', version: 1, arm: 'STABLE' },
    });
  });

  it('leaves the decisions of the stable policy exactly as they would be without it', () => {
    const pools = (world: ReturnType<typeof startRouter>): string[] => {
      for (const worker of ['w1', 'w2', 'w3'])
        world.router.onStatus(status({ worker, slots: [Number(worker.slice(1))], batchRequests: 100 }));
      return Array.from({ length: 60 }, () => {
        const job = world.route();
        return `${job.outputs[0]?.partition}`;
      });
    };
    const config = { creditsMax: 1_000 };
    expect(pools(startRouter({ config, canary: canary({ mode: 'shadow' }) }))).toEqual(
      pools(startRouter({ config })),
    );
  });

  it('is counted by leaf: what it changes, and what it would hit', () => {
    const { route, take } = startShadow();
    for (let n = 0; n < 3; n += 1) route({ signals: { candidateCount: 5 } });
    for (let n = 0; n < 2; n += 1) route({ signals: { candidateCount: 500 } });
    const { shadow, shadowLeaves, shadowExceptions } = take();
    expect(shadow).toMatchObject([
      { leaf: 'rest', requests: 3, changed: 3, changedUndeclared: 3 },
      // The same target: neither changed nor compared.
      { leaf: 'wide', requests: 2, changed: 0, changedUndeclared: 0, latencyRatioOver: 0 },
    ]);
    expect(shadowLeaves).toEqual({ all: 5 });
    expect(shadowExceptions).toBe(0);
    expect(take()).toMatchObject({ shadow: [], shadowLeaves: {}, projectedUtilisation: {} });
  });

  it('counts leaves by whatever a leaf may be called', () => {
    const { route, take } = startShadow(policy(CANDIDATE_TREE.replace('all', 'toString'), 2));
    for (let n = 0; n < 2; n += 1) route();
    expect(Object.entries(take().shadowLeaves)).toEqual([['toString', 2]]);
  });

  it.each([
    ['names the leaf', 'expect: {leaves: [all]}', 0],
    ['names no leaves', 'expect: {changedShare: [0, 1]}', 0],
    ['names another leaf', 'expect: {leaves: [other]}', 1],
  ])('declares a change where its document %s', (_name, expectation, undeclared) => {
    const tree = `
  - {id: other, when: candidateCount > 9000, to: {accelerator: cpu, kernel: dense, memory: host}}${CANDIDATE_TREE}`;
    const { route, take } = startShadow(policy(tree, 2, expectation));
    route();
    expect(take().shadow).toMatchObject([
      {
        changed: 1,
        changedUndeclared: undeclared,
        latencyRatioOver: 1,
        latencyRatioOverUndeclared: undeclared,
      },
    ]);
  });

  it.each([
    { what: 'as fast and as idle', gpu: { speed: 1 }, apart: 0 },
    { what: '4 % faster', gpu: { speed: 1.04 }, apart: 0 },
    { what: '10 % faster', gpu: { speed: 1.1 }, apart: 1 },
    { what: '10 % slower', gpu: { speed: 0.9 }, apart: 1 },
    { what: 'as fast, with a queue', gpu: { speed: 1, queuedPredictedMs: 5, incarnation: 'i2' }, apart: 1 },
    { what: 'not there, nor its fallback', gpu: { slots: [] }, apart: 1 },
  ])('is apart in latency by service and wait: a target $what', ({ gpu, apart }) => {
    const tree = '\n  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}';
    const { router, route, take } = startShadow(policy(tree, 2));
    router.onStatus({ ...GPU, sequence: 2, ...gpu });
    route({ signals: { predictedCostMs: 10 } });
    expect(take().shadow).toMatchObject([{ requests: 1, changed: 1, latencyRatioOver: apart }]);
  });

  it('that throws is counted, and nobody is harmed', () => {
    const broken = policy(CANDIDATE_TREE, 2);
    const compiled = {
      ...broken.compiled,
      decide: () => {
        throw new Error('a branch that never ends');
      },
    };
    const { route, take } = startShadow({ ...broken, compiled });
    expect(dispatchOf(route()).policy.arm).toBe('STABLE');
    expect(take()).toMatchObject({
      shadow: [{ leaf: 'rest', requests: 1, changed: 0 }],
      shadowExceptions: 1,
      shadowLeaves: {},
    });
    expect(take()).toMatchObject({ shadow: [], shadowExceptions: 0 });
  });

  it('has the cost of every sixteenth decision sampled, in microseconds', () => {
    const slow = policy(CANDIDATE_TREE, 2);
    const holder: { spend: () => void } = { spend: () => {} };
    const compiled = {
      ...slow.compiled,
      decide: (...args: Parameters<typeof slow.compiled.decide>) => {
        holder.spend();
        return slow.compiled.decide(...args);
      },
    };
    let nowMs = 0;
    const world = startShadow({ ...slow, compiled });
    const { clock } = world;
    const real = clock.monotonicMs.bind(clock);
    clock.monotonicMs = () => real() + nowMs;
    holder.spend = () => {
      nowMs += 0.25;
    };
    for (let n = 0; n < 160; n += 1) world.route({}, { deadlineMs: 1e9 });
    const sketch = LatencySketch.fromBytes(world.take().shadowCostSketch);
    expect(sketch.count).toBe(10);
    expect(sketch.quantileMs(0.99) / 250).toBeCloseTo(1, 1);
  });

  it('projects the work that it would send to each pool', async () => {
    const { clock, router, route, take } = startShadow();
    for (let second = 0; second < 4; second += 1) {
      for (let n = 0; n < 10; n += 1) route({ signals: { predictedCostMs: 100 } }, { deadlineMs: 1e9 });
      await clock.advanceBy(1_000);
      router.onStatus({ ...GPU, sequence: second + 2 });
    }
    // A second of work each second, on a worker that does four.
    expect(take().projectedUtilisation).toEqual({ gpu: 0.25 });
  });

  it('counts a request once, however often it waits and is tried again', () => {
    const { router, route, take } = startShadow();
    const jobs = Array.from({ length: 5 }, () => route({ model: 'nobody' }));
    router.onStatus(status({ sequence: 2 }));
    router.onAck(ack());
    expect(jobs.every(({ ends }) => ends === 0)).toBe(true);
    expect(take().shadow).toMatchObject([{ requests: 5 }]);
  });
});

describe('a swap', () => {
  it('does not count again what waited through it', () => {
    const { router, route, take } = startShadow();
    for (let n = 0; n < 5; n += 1) route({ model: 'nobody' });
    router.beforeSwap(() => expect(take().shadow).toMatchObject([{ requests: 5 }]));
    router.setPolicy(policy(undefined, 3), canary({ mode: 'shadow' }));
    expect(router.waiting).toBe(5);
    expect(take().shadow).toEqual([]);
  });
});

describe('without a candidate in shadow', () => {
  it('there is nothing to take', () => {
    expect(startRouter().router.takeShadow()).toBeUndefined();
    expect(startRouter({ canary: canary() }).router.takeShadow()).toBeUndefined();
  });
});
