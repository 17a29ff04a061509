import { describe, expect, it } from 'vitest';
import type { RecordCodec } from '../../../../src/contracts/codec.ts';
import {
  type Dispatch,
  makePublishedVersion,
  type PublishedVersion,
} from '../../../../src/contracts/records.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { POLICY_VERSION_MAX } from '../../../../src/core/policy/document.ts';
import { codecs, inbound, topics } from '../records.fixture.ts';
import { ack, canary, dispatchOf, policy, resultFor, startRouter, status, TREE } from './router.fixture.ts';

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

const publishedVersion = (
  version: string,
  state: PublishedVersion['status'],
  variant: PublishedVersion['variant'] = 'BASELINE',
): PublishedVersion => makePublishedVersion({ family: 'ranker', version, status: state, variant });

describe('a dispatch', () => {
  it('can name the highest version that a policy may have', () => {
    const { router, route } = startRouter({ policy: policy(TREE, POLICY_VERSION_MAX) });
    router.onStatus(status());
    expect(dispatchOf(route()).policy.version).toBe(POLICY_VERSION_MAX);
  });

  it('goes to the slot, with everything that the worker and the books need', () => {
    const { clock, router, route } = startRouter();
    router.onStatus(status({ slots: [3] }));
    const job = route(
      { signals: { candidateCount: 2, predictedCostMs: 7 }, budgetMs: 100, extractMs: 1, resultPartition: 1 },
      { inTopicMs: 4, deadlineMs: clock.monotonicMs() + 60 },
    );
    expect(job.outputs[0]).toMatchObject({ topic: topics.dispatch('cpu'), partition: 3 });
    expect(job.outputs[0]?.key?.toString()).toBe('r1');
    expect(dispatchOf(job)).toMatchObject({
      requestId: 'r1',
      identity: { topic: topics.ingress(), partition: 3, offset: 7 },
      attempt: 1,
      accelerator: 'cpu',
      pool: 'cpu',
      kernel: 'dense',
      memory: 'host',
      model: 'ranker',
      modelVersion: '1',
      variant: 'BASELINE',
      scoreLimit: 2,
      policy: {
        digest: 'sha256:1',
        name: 'test',
        version: 1,
        epoch: 1,
        leaf: 'rest',
        arm: 'STABLE',
        analysed: true,
      },
      fallback: null,
      budgetMs: 100,
      budgetRemainingMs: 60,
      inTopicMs: 4,
      extractMs: 1,
      predictedMs: 7,
      router: 'router#1',
      ackPartition: 2,
      sequence: 1,
      resultPartition: 1,
      trace: null,
      payload: Buffer.from('payload'),
    });
  });

  it.each([
    ['no prediction', {}],
    ['a prediction that could not be made', { predictedCostMs: Number.NaN }],
    ['a prediction of nothing', { predictedCostMs: 0 }],
  ])('of a request with %s weighs 1 ms in a queue', (_name, signals) => {
    const { router, route } = startRouter();
    router.onStatus(status());
    expect(dispatchOf(route({ signals })).predictedMs).toBe(1);
  });

  it('takes the sequences 1, 2, 3 and a credit of the slot each', () => {
    const { router, route } = startRouter({ config: { creditsMax: 3 } });
    router.onStatus(status({ batchRequests: 3 }));
    expect([1, 2, 3].map(() => dispatchOf(route()).sequence)).toEqual([1, 2, 3]);
    expect(router.fleet.slotsOf('cpu')[0]?.credits.outstanding).toBe(3);
    expect(route().ends).toBe(0);
  });

  it('is counted by leaf and pool, once per window', () => {
    const { router, route } = startRouter();
    router.onStatus(status());
    route();
    route();
    route();
    expect(router.counts.take()).toEqual({
      leaves: { rest: 2 },
      pools: { cpu: 2 },
      errors: {},
      exposure: { STABLE: 2 },
      arms: [{ arm: 'STABLE', analysed: true, requests: 2, outcomes: {}, errors: {} }],
      stalls: 1,
    });
    expect(router.counts.take()).toMatchObject({ leaves: {}, exposure: {}, arms: [], stalls: 0 });
  });

  it('is of the variant that its own family has under that version', () => {
    const { router, route } = startRouter();
    router.onStatus(
      status({
        models: [
          { family: 'other', version: '1', variant: 'ENHANCED' },
          { family: 'ranker', version: '1', variant: 'BASELINE' },
        ],
      }),
    );
    expect(dispatchOf(route()).variant).toBe('BASELINE');
    expect(dispatchOf(route({ model: 'other', modelVersion: '1' })).variant).toBe('ENHANCED');
  });

  it('is for the version that its policy names, unless the request pins another', () => {
    const { router, route } = startRouter({ policy: policy(TREE, 1, 'models: {ranker: 3}') });
    router.onStatus(
      status({
        published: [publishedVersion('3', 'READY', 'ENHANCED'), publishedVersion('4', 'LOADING')],
      }),
    );
    expect(dispatchOf(route())).toMatchObject({ modelVersion: '3', variant: 'ENHANCED', degradation: null });
    router.onAck(ack({ completed: [1] }));
    expect(dispatchOf(route({ modelVersion: '1' }))).toMatchObject({
      modelVersion: '1',
      variant: 'BASELINE',
    });
  });

  it('is for the newest of the folder, degraded, where nobody is ready with the version of the policy', () => {
    const { router, route } = startRouter({ policy: policy(TREE, 1, 'models: {ranker: 4}') });
    router.onStatus(status({ published: [publishedVersion('4', 'LOADING')] }));
    expect(dispatchOf(route())).toMatchObject({
      modelVersion: '1',
      degradation: 'version 1 computed it in place of 4, which no live worker has',
    });
  });

  it('can be asked whether the fleet could serve a policy', () => {
    const { router } = startRouter();
    const { compiled } = policy(TREE, 1, 'models: {ranker: 4}');
    expect(router.unservable(compiled)).toBeUndefined();
    router.onStatus(status({ published: [publishedVersion('4', 'LOADING')] }));
    expect(router.unservable(compiled)).toBe(
      'no live worker of gpu-a100, cpu can run ranker@4; no live worker of cpu can run ranker@4',
    );
    router.onStatus(status({ sequence: 2, published: [publishedVersion('4', 'READY')] }));
    expect(router.unservable(compiled)).toBeUndefined();
  });

  it('says why its target is not the leaf’s first choice', () => {
    const { router, route } = startRouter();
    router.onStatus(status());
    const job = route({ signals: { candidateCount: 500 } });
    expect(dispatchOf(job)).toMatchObject({
      accelerator: 'cpu',
      pool: 'cpu',
      policy: { leaf: 'wide' },
      fallback: 'no live worker of gpu-a100; the worker has no memory domain hbm',
    });
  });
});

describe('a request whose budget is over', () => {
  it('expires at once, and the result says where and when', () => {
    const { router, route } = startRouter();
    router.onStatus(status());
    const experiments = { layout: 'B' };
    const job = route({ budgetMs: 100, extractMs: 2, experiments }, { inTopicMs: 103, deadlineMs: 0 });
    expect(resultFor(job)).toMatchObject({
      outcome: 'EXPIRED',
      experiments,
      reason: {
        code: 'BUDGET_EXHAUSTED',
        message: 'in the router: the budget ran out before a slot could be chosen',
        retryable: true,
      },
      identity: { topic: topics.ingress(), partition: 3, offset: 7 },
      timings: { inTopicMs: 103, extractMs: 2, routeMs: 0, totalMs: 105, budgetMs: 100 },
    });
    expect(router.counts.take().errors).toEqual({ BUDGET_EXHAUSTED: 1 });
  });

  it('expires where it waits, no later than a look after its deadline', async () => {
    const { clock, route, router } = startRouter();
    const job = route();
    await clock.advanceBy(99);
    expect(job.ends).toBe(0);
    await clock.advanceBy(10);
    expect(resultFor(job).outcome).toBe('EXPIRED');
    expect(resultFor(job).timings.routeMs).toBeGreaterThanOrEqual(100);
    expect(router.waiting).toBe(0);
  });

  it('is answered where it wants to be answered', () => {
    expect(startRouter().route({ resultPartition: 3 }, { deadlineMs: 0 }).outputs[0]?.partition).toBe(3);
  });
});

describe('what cannot be dispatched at all', () => {
  const tooLarge: RecordCodec<Dispatch> = {
    ...codecs.for('Dispatch'),
    record: 'Dispatch',
    encode: (dispatch) => {
      if (dispatch.requestId.startsWith('huge'))
        throw new MillraceError('TOO_LARGE', 'Dispatch is too large');
      return codecs.for('Dispatch').encode(dispatch);
    },
    decode: (bytes) => codecs.for('Dispatch').decode(bytes),
  };

  it('is a dead letter, and costs the slot no credit', () => {
    const { router, route } = startRouter({ dispatchCodec: tooLarge });
    router.onStatus(status());
    const job = route({ requestId: 'huge' });
    expect(job.letters).toEqual([{ code: 'TOO_LARGE', message: 'Dispatch is too large' }]);
    expect(router.fleet.slotsOf('cpu')[0]?.credits.outstanding).toBe(0);
  });

  it.each(['a heartbeat', 'a policy'])('disturbs nobody who waits with it, woken by %s', (by) => {
    const nobodys = policy('\n  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}');
    const { router, route } = startRouter({
      dispatchCodec: tooLarge,
      ...(by === 'a policy' ? { policy: nobodys } : {}),
    });
    if (by === 'a policy') router.onStatus(status());
    const huge = route({ requestId: 'huge' });
    const other = route();
    expect(router.waiting).toBe(2);
    if (by === 'a policy') router.setPolicy(policy(undefined, 2));
    else router.onStatus(status());
    expect(huge.letters).toHaveLength(1);
    expect(dispatchOf(other).requestId).toBe('r2');
  });
});

describe('requests that wait', () => {
  it('go out by deadline, whichever leaf and arm they are of: none is late for another’s queue', () => {
    const { router, route, routed, clock } = startRouter({
      config: { creditsMax: 1_000 },
      policy: policy(`
  - {id: wide, when: candidateCount > 100, to: {accelerator: cpu, kernel: dense, memory: host}}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}}`),
      canary: canary({ unit: 'requestId', percent: 25 }),
    });
    for (let i = 0; i < 40; i += 1) {
      const candidateCount = i % 3 === 0 ? 500 : 5;
      route({ signals: { candidateCount } }, { deadlineMs: clock.monotonicMs() + 100 + i });
    }
    router.onStatus(status({ batchRequests: 10 }));
    const wentOut = routed.map((job) => job.outputs.length > 0);
    expect(wentOut).toEqual(routed.map((_job, i) => i < 10));
    const dispatched = routed.slice(0, 10).map(dispatchOf);
    expect(new Set(dispatched.map(({ policy }) => policy?.leaf)).size).toBeGreaterThan(1);
    expect(new Set(dispatched.map(({ policy }) => policy?.arm)).size).toBe(2);
  });

  it('go on when a worker is heard of, the earliest deadline first, as far as credits reach', () => {
    const { router, route } = startRouter();
    const jobs = [90, 30, 60].map((deadlineMs) => route({}, { deadlineMs }));
    expect(router.waiting).toBe(3);
    router.onStatus(status());
    expect(jobs.map(({ ends }) => ends)).toEqual([0, 1, 1]);
    expect(jobs.slice(1).map((job) => dispatchOf(job).sequence)).toEqual([1, 2]);
  });

  it('go on when an acknowledgement makes room, one for each credit', () => {
    const { router, route, exhaust } = startRouter();
    router.onStatus(status());
    const [sequence = 0] = exhaust();
    const jobs = [route({}, { deadlineMs: 80 }), route({}, { deadlineMs: 40 })];
    router.onAck(ack({ completed: [sequence], sojournMs: [1] }));
    expect(jobs.map(({ ends }) => ends)).toEqual([0, 1]);
  });

  it('go on when the credits of a lost acknowledgement are given up', async () => {
    const { clock, router, route, exhaust } = startRouter();
    router.onStatus(status());
    exhaust();
    const job = route({}, { deadlineMs: 10_000 });
    await clock.advanceBy(1_050);
    expect(job.ends).toBe(0);
    router.onStatus(status({ sequence: 2 }));
    await clock.advanceBy(60);
    expect(dispatchOf(job).requestId).toBe(job.request.requestId);
  });

  it('do not stand in the way of another model’s, whose workers are there', () => {
    const { router, route } = startRouter();
    const nobodys = route({ model: 'nobody' }, { deadlineMs: 10 });
    const pinned = route({ modelVersion: '9' }, { deadlineMs: 20 });
    const job = route({}, { deadlineMs: 90 });
    router.onStatus(status());
    expect([nobodys.ends, pinned.ends, job.ends]).toEqual([0, 0, 1]);
  });

  it('do not stand in the way of another leaf’s', () => {
    const { router, route } = startRouter({
      policy: policy(`
  - {id: wide, when: candidateCount > 100, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}}`),
    });
    const wide = route({ signals: { candidateCount: 500 } }, { deadlineMs: 10 });
    const rest = route({}, { deadlineMs: 90 });
    router.onStatus(status());
    expect([wide.ends, rest.ends]).toEqual([0, 1]);
  });

  it('keep nothing scheduled once none is left', async () => {
    const { clock, router, route } = startRouter();
    route();
    expect(clock.pending).toBe(1);
    router.onStatus(status());
    await clock.advanceBy(20);
    expect(clock.pending).toBe(0);
    route({}, { deadlineMs: 1_000 });
    route({}, { deadlineMs: 1_000 });
    router.close();
    expect(clock.pending).toBe(0);
  });

  it('are given up when their partition goes away, and only they', () => {
    const { router, route } = startRouter();
    const gone = route({}, { record: inbound({ partition: 1 }) });
    const kept = route({}, { record: inbound({ partition: 2 }) });
    router.abandon((record) => record.partition === 1);
    expect([gone.abandonments, kept.ends, router.waiting]).toEqual([1, 0, 1]);
    router.onStatus(status());
    expect([gone.ends, kept.ends]).toEqual([1, 1]);
  });

  it('end exactly once each, however they are woken', async () => {
    const { clock, router, route, routed } = startRouter();
    for (let n = 0; n < 40; n += 1) route({}, { deadlineMs: 10 + 5 * n });
    router.onStatus(status({ batchRequests: 2 }));
    for (let sequence = 1; sequence < 10; sequence += 1) {
      await clock.advanceBy(7);
      router.onAck(ack({ completed: [sequence], sojournMs: [1] }));
      router.setPolicy(policy(undefined, sequence + 1));
      router.onStatus(status({ sequence: sequence + 1, batchRequests: 2 }));
    }
    await clock.advanceBy(1_000);
    expect(routed.map(({ ends }) => ends)).toEqual(routed.map(() => 1));
  });
});

describe('a policy that is swapped', () => {
  it('decides waiting requests anew, the most urgent first', () => {
    const { router, route } = startRouter({
      policy: policy('\n  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}'),
    });
    router.onStatus(status());
    const jobs = [90, 30, 60].map((deadlineMs) => route({}, { deadlineMs }));
    expect(router.waiting).toBe(3);
    router.setPolicy(policy(undefined, 2));
    expect(jobs.map(({ ends }) => ends)).toEqual([0, 1, 1]);
    expect(dispatchOf(jobs[1] ?? route())).toMatchObject({
      sequence: 1,
      policy: { leaf: 'rest', version: 2, epoch: 2, digest: 'sha256:2' },
    });
    expect(router.policy.epoch).toBe(2);
  });
});

describe('two policies', () => {
  const GPU = status({ pool: 'gpu', accelerator: 'gpu-a100', worker: 'g1', memories: ['hbm'] });
  const always = { percent: 100, unit: 'requestId' } as const;

  it('send each arm where its own policy says, and count it there', () => {
    const { router, route } = startRouter({ canary: canary(), config: { creditsMax: 1_000 } });
    router.onStatus(status({ batchRequests: 1_000 }));
    router.onStatus({ ...GPU, batchRequests: 1_000 });
    const dispatched = Array.from({ length: 400 }, (_, n) => dispatchOf(route({ bucketKey: `user-${n}` })));
    for (const { pool, policy: decision } of dispatched) {
      const isCanary = decision.arm === 'CANARY';
      expect([pool, decision.leaf, decision.version]).toEqual(
        isCanary ? ['gpu', 'all', 2] : ['cpu', 'rest', 1],
      );
    }
    const canaries = dispatched.filter(({ policy: { arm } }) => arm === 'CANARY').length;
    expect(canaries).toBeGreaterThan(100);
    const counted = router.counts.take();
    expect(counted.exposure).toEqual({ STABLE: 400 - canaries, CANARY: canaries });
    expect(counted.pools).toEqual({ cpu: 400 - canaries, gpu: canaries });
    const analysed = dispatched.filter((dispatch) => dispatch.policy.analysed).length;
    expect(sum(counted.arms.filter((arm) => arm.analysed).map(({ requests }) => requests))).toBe(analysed);
    expect(sum(counted.arms.map(({ requests }) => requests))).toBe(400);
  });

  it('wait apart: what holds up one arm does not hold up the other', () => {
    const nobodys = policy('\n  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}', 2);
    const { router, route } = startRouter({
      // Both have one leaf, for the same model: only the arm tells them apart.
      policy: policy('\n  - {id: all, to: {accelerator: cpu, kernel: dense, memory: host}}'),
      canary: canary({ policy: nobodys, unit: 'requestId' }),
      config: { creditsMax: 1_000 },
    });
    const jobs = Array.from({ length: 40 }, () => route({}, { deadlineMs: 1_000 }));
    router.onStatus(status({ batchRequests: 100 }));
    router.onStatus(status({ sequence: 2, batchRequests: 100 }));
    const waiting = jobs.filter(({ ends }) => ends === 0);
    expect(waiting.length).toBe(router.waiting);
    expect(waiting.length).toBeGreaterThan(5);
    expect(waiting.length).toBeLessThan(35);
  });

  it('leave a waiting request to the policy of its arm', () => {
    const { router, route } = startRouter({ canary: canary(always) });
    const job = route();
    router.onStatus(status());
    expect(dispatchOf(job).policy).toMatchObject({ arm: 'CANARY', leaf: 'all', version: 2 });
  });

  it.each([
    { what: 'the canary is over', next: undefined, arm: 'STABLE', leaf: 'rest' },
    {
      what: 'the canary widens',
      next: canary({ ...always, policy: policy(undefined, 3) }),
      arm: 'CANARY',
      leaf: 'rest',
    },
    {
      what: 'the canary only shadows',
      next: canary({ ...always, mode: 'shadow' }),
      arm: 'STABLE',
      leaf: 'rest',
    },
  ] as const)('decide a waiting request anew when $what', ({ next, arm, leaf }) => {
    const { router, route } = startRouter({ canary: canary(always) });
    const job = route();
    expect(job.ends).toBe(0);
    router.setPolicy(policy(undefined, 4), next);
    router.onStatus(status());
    expect(dispatchOf(job).policy).toMatchObject({ arm, leaf });
    expect(router.counts.take().exposure).toEqual({ [arm]: 1 });
  });

  it('count what ends in the router in the arm that decided it', async () => {
    const { clock, router, route } = startRouter({ canary: canary(always) });
    route({ bucketKey: 'user-1' });
    await clock.advanceBy(200);
    expect(router.counts.take()).toMatchObject({
      exposure: { CANARY: 1 },
      arms: [{ arm: 'CANARY', requests: 1, outcomes: { EXPIRED: 1 }, errors: { BUDGET_EXHAUSTED: 1 } }],
    });
  });

  it('explain a decision by the policy that made it', () => {
    const { router, route } = startRouter({ canary: canary(always) });
    router.onStatus(status());
    expect(JSON.parse(dispatchOf(route({ explain: true })).trace ?? '')).toMatchObject({
      policy: { version: 2, arm: 'CANARY' },
      path: { leaf: 'all' },
    });
  });
});

describe('a policy that cannot decide at all', () => {
  it('costs only the request, also among those that wait', () => {
    const broken = policy();
    let isBroken = false;
    const compiled = {
      ...broken.compiled,
      decide: (...args: Parameters<typeof broken.compiled.decide>) => {
        if (isBroken) throw new Error('no leaf');
        return broken.compiled.decide(...args);
      },
    };
    const { router, route } = startRouter();
    const jobs = [route(), route()];
    isBroken = true;
    router.setPolicy({ ...broken, compiled });
    expect(jobs.map(({ letters }) => letters)).toEqual(
      jobs.map(() => [{ code: 'POISON', message: 'no leaf' }]),
    );
    expect(router.counts.take()).toMatchObject({ errors: { POISON: 2 }, arms: [] });
  });
});

describe('a swap', () => {
  it('is announced while the counts are still those of the policies before', () => {
    const { router, route } = startRouter();
    router.onStatus(status());
    route();
    const seen: unknown[] = [];
    router.beforeSwap(() => seen.push([router.policy.epoch, router.counts.take().exposure]));
    router.setPolicy(policy(undefined, 2));
    expect(seen).toEqual([[1, { STABLE: 1 }]]);
  });
});

describe('acknowledgements', () => {
  it('of another router, or of an earlier life of this one, change nothing', () => {
    const { router, route, exhaust } = startRouter();
    router.onStatus(status());
    const sequences = exhaust();
    router.onAck(ack({ router: 'router#0', completed: sequences, sojournMs: sequences.map(() => 1) }));
    expect(route().ends).toBe(0);
  });

  it('of a new holder of the slot give their credits back before its first heartbeat is heard', () => {
    const { router, route, exhaust } = startRouter();
    router.onStatus(status());
    const sequences = exhaust();
    const job = route();
    router.onAck(ack({ incarnation: 'i2', completed: sequences, sojournMs: sequences.map(() => 1) }));
    expect(job.ends).toBe(1);
  });
});

describe('readiness', () => {
  it('waits for the first heartbeat', () => {
    const { router } = startRouter();
    expect(router.unready()).toBe('no worker has been heard of yet');
    router.onStatus(status());
    expect(router.unready()).toBeUndefined();
  });
});

describe('a worker that says good-bye', () => {
  it('gets nothing more', () => {
    const { router, route } = startRouter();
    router.onStatus(status());
    router.onWorkerGone('w1');
    expect(route().ends).toBe(0);
  });
});

describe('an explanation', () => {
  it('is JSON with policy, path, signals, slot and how old its inputs are', async () => {
    const { clock, router, route } = startRouter();
    router.onStatus(status({ queuedPredictedMs: 5 }));
    await clock.advanceBy(3);
    const { trace } = dispatchOf(route({ explain: true, signals: { candidateCount: 2 } }));
    expect(JSON.parse(trace ?? '')).toEqual({
      policy: {
        digest: 'sha256:1',
        name: 'test',
        version: 1,
        epoch: 1,
        leaf: 'rest',
        arm: 'STABLE',
        analysed: true,
      },
      path: {
        leaf: 'rest',
        steps: [
          { node: 'wide', when: 'candidateCount > 100', outcome: 'false', read: { candidateCount: 2 } },
          { node: 'rest', when: null, outcome: 'true', read: {} },
        ],
      },
      signals: { candidateCount: 2 },
      slot: { pool: 'cpu', partition: 0, worker: 'w1' },
      slotsConsidered: 1,
      expectedWaitMs: 2,
      statusAgeMs: 3,
    });
  });

  it('of a request that waited is its own, not that of who was decided last', () => {
    const { router, route } = startRouter();
    const job = route({ explain: true, signals: { candidateCount: 500 } });
    route({ signals: { candidateCount: 2 } });
    router.onStatus(status());
    expect(JSON.parse(dispatchOf(job).trace ?? '')).toMatchObject({
      path: { leaf: 'wide', steps: [{ read: { candidateCount: 500 } }] },
    });
  });
});
