import { describe, expect, it } from 'vitest';
import type { RouterWindow } from '../../src/contracts/records.ts';
import { createTopicDelay } from '../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { headShift, judgeIndex } from '../../src/core/rollout/score-shift.ts';
import type { CanaryPointer, PolicyPointer } from '../../src/ports/control-store.ts';
import { openRolloutObserver } from '../../src/stages/policy-controller/rollout-observer.ts';
import { digestOf } from '../../src/wiring/policy-files.ts';
import { policyText } from './fleet.ts';
import { Installation } from './installation.ts';
import { scheduleTraffic } from './traffic.ts';

const LEASE_MS = 60_000;
const REQUESTS = 300;
const SPREAD_MS = 3_000;

/** Another tree than the stable policy's, so that it shows whose decision it was. */
const CANDIDATE = Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: sim
version: 2
signals: {candidateCount: int}
tree:
  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: host}, fallback: [cpu]}
`);

function canaryOf(fields: Partial<CanaryPointer>): CanaryPointer {
  return {
    policy: { digest: digestOf(CANDIDATE), name: 'sim', version: 2 },
    mode: 'canary',
    percent: 5,
    salt: 'rollout-1',
    unit: 'bucketKey',
    leaseMs: LEASE_MS,
    beat: 1,
    ...fields,
  };
}

/** Two routers and everything else but a controller: the test writes the pointers. */
async function startRollout(topology: 'split' | 'fused') {
  const installation = new Installation({ seed: 1, deliveryDelayMs: 1, topology });
  await installation.open();
  for (const [pool, slot] of [
    ['cpu', 0],
    ['cpu', 1],
    ['gpu', 0],
  ] as const)
    installation.startWorker(pool, slot);
  installation.startRouter('router-a', 0);
  installation.startRouter('router-b', 1);
  if (topology === 'split') installation.startExtractor();
  await installation.allSettled();
  const store = installation.store.connect();
  for (const bytes of [policyText(1), CANDIDATE])
    await installation.settle(store.putDocument(digestOf(bytes), bytes));
  const windows: RouterWindow[] = [];
  const { bus, codecs, topics } = installation.client;
  await installation.settle(
    bus.read({ topics: [topics.fixed('routing-metrics')], startAt: 'earliest' }, (records) => {
      for (const { value } of records) {
        const decoded = codecs.for('RouterWindow').decode(value);
        if (decoded.status === 'ok') windows.push(decoded.value);
      }
    }),
  );
  const write = async (epoch: number, canary: CanaryPointer | undefined): Promise<void> => {
    const stable = { digest: digestOf(policyText(1)), name: 'sim', version: 1 };
    const pointer: PolicyPointer = { epoch, term: 1, stable, canary };
    const written = await installation.settle(store.writePointer('policy/sim', pointer));
    expect(written).toEqual({ status: 'applied' });
    await installation.pass(100);
  };
  let sent = 0;
  /** Sends requests of as many users, and answers how many of their results were the canary's. */
  const traffic = async (): Promise<number> => {
    const before = installation.auditor.results.length;
    const first = sent;
    sent += REQUESTS;
    await scheduleTraffic(installation, {
      requests: REQUESTS,
      spreadMs: SPREAD_MS,
      deadlinesMs: [60_000],
      change: (request, n) => ({
        ...request,
        requestId: `r${first + n}`,
        bucketKey: `user-${first + n}`,
      }),
    });
    await installation.pass(SPREAD_MS + 100);
    for (let n = 0; n < 100 && installation.ledger.summary().inFlight > 0; n += 1)
      await installation.pass(200);
    const results = installation.auditor.results.slice(before);
    expect(results).toHaveLength(REQUESTS);
    for (const { policy } of results)
      expect([policy?.version, policy?.leaf === 'all']).toEqual(
        policy?.arm === 'CANARY' ? [2, true] : [1, false],
      );
    return results.filter(({ policy }) => policy?.arm === 'CANARY').length;
  };
  /** The invariant, and that every router's windows tell the same as the results. */
  const closeBooks = async (canaries: number): Promise<void> => {
    await installation.pass(1_500);
    const summary = installation.ledger.summary();
    expect(summary).toMatchObject({ ingress: sent, inFlight: 0, balanced: true, outcomes: { scored: sent } });
    expect(installation.auditor.violations).toEqual([]);
    const exposed = (arm: string): number =>
      windows.reduce((sum, window) => sum + (window.exposure[arm] ?? 0), 0);
    expect([exposed('CANARY'), exposed('STABLE')]).toEqual([canaries, sent - canaries]);
  };
  return { installation, windows, write, traffic, closeBooks };
}

describe.each(['split', 'fused'] as const)('a canary in the whole pipeline, topology %s', (topology) => {
  it('gets its share, widens, and after an abort at 50 %% exactly nothing', async () => {
    const { write, traffic, closeBooks } = await startRollout(topology);
    await write(1, undefined);
    expect(await traffic()).toBe(0);
    await write(2, canaryOf({ percent: 5 }));
    const five = await traffic();
    expect(five).toBeGreaterThan(0);
    expect(five).toBeLessThan(0.12 * REQUESTS);
    await write(3, canaryOf({ percent: 50 }));
    const fifty = await traffic();
    expect(fifty).toBeGreaterThan(0.4 * REQUESTS);
    expect(fifty).toBeLessThan(0.6 * REQUESTS);
    await write(4, undefined);
    expect(await traffic()).toBe(0);
    await closeBooks(five + fifty);
  });

  it('is left by itself when its controller died: the lease lapses', async () => {
    const { installation, write, traffic, closeBooks } = await startRollout(topology);
    await write(1, undefined);
    await write(2, canaryOf({ percent: 100 }));
    expect(await traffic()).toBe(REQUESTS);
    await installation.pass(LEASE_MS);
    expect(await traffic()).toBe(0);
    await closeBooks(REQUESTS);
  });

  it('in shadow decides every request and acts on none', async () => {
    const { windows, write, traffic, closeBooks } = await startRollout(topology);
    await write(1, undefined);
    await write(2, canaryOf({ mode: 'shadow', percent: 0 }));
    expect(await traffic()).toBe(0);
    await closeBooks(0);
    const compared = windows.flatMap(({ shadow }) => shadow);
    const sum = (of: 'requests' | 'changed'): number => compared.reduce((total, each) => total + each[of], 0);
    expect(sum('requests')).toBe(REQUESTS);
    expect(sum('changed')).toBeGreaterThan(0);
    expect(sum('changed')).toBeLessThan(REQUESTS);
    expect(windows.some(({ projectedUtilisation }) => (projectedUtilisation['gpu'] ?? 0) > 0)).toBe(true);
    expect(windows.every(({ shadowExceptions }) => shadowExceptions === 0)).toBe(true);
  });
});

describe('the scores of a canary in the whole pipeline', () => {
  it('are in the looks of a controller by arm, so that other ones are seen', async () => {
    const { installation, write, traffic, closeBooks } = await startRollout('split');
    installation.scoreFactors.set('gpu', 0.5);
    const { client } = installation;
    const observer = await installation.settle(
      openRolloutObserver(
        {
          ...client,
          random: seededRandom(1),
          topicDelay: createTopicDelay(),
          store: installation.store.connect(),
          digest: (bytes) => digestOf(bytes),
        },
        () => [],
      ),
    );
    await write(1, undefined);
    await write(2, canaryOf({ percent: 30 }));
    const watched = {
      policy: 'sim',
      epoch: 2,
      candidateDigest: digestOf(CANDIDATE),
      models: [],
      accelerators: [],
      scoreEdges: {},
    };
    const look = () => installation.settle(observer.observe('policy/sim', watched));
    expect(await look()).toBeUndefined();
    let canaries = 0;
    const fewHundred = async (): Promise<number> => {
      const before = canaries;
      for (let times = 0; times < 3; times += 1) canaries += await traffic();
      await installation.pass(1_500);
      return canaries - before;
    };
    await fewHundred();
    // From here on it is known between what to count.
    expect((await look())?.scores).toEqual({});
    const seenCanaries = await fewHundred();
    const heads = Object.entries((await look())?.scores ?? {});
    expect(heads.map(([head]) => head.split('/')[0])).toEqual(['ranker', 'ranker']);
    for (const [head, scores] of heads) {
      const { candidateCount, stableCount, psi, psiNoise, candidateMean, stableMean } = headShift(scores);
      expect([head, candidateCount, stableCount]).toEqual([head, seenCanaries, 3 * REQUESTS - seenCanaries]);
      expect(judgeIndex(psi, psiNoise, 0.25)).toBe('over');
      expect(candidateMean).toBeLessThan(0.75 * stableMean);
    }
    await installation.settle(observer.close());
    await closeBooks(canaries);
  });
});
