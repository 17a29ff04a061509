import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leastUnacknowledged } from '../../../../src/simulation/baselines/least-unacknowledged.ts';
import { prequal } from '../../../../src/simulation/baselines/prequal.ts';
import { randomChoice } from '../../../../src/simulation/baselines/random-choice.ts';
import type { CreateChooser, Members } from '../../../../src/simulation/routing/chooser.ts';
import type { Change, RoutingScenario } from '../../../../src/simulation/routing/scenario.ts';
import { run, small, textbook } from './scenario.fixture.ts';

const toFirst: CreateChooser = () => ({ choose: () => 0 });

const change: fc.Arbitrary<Change> = fc
  .tuple(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 1, max: 2 }))
  .chain(([atMs, worker]) =>
    fc.constantFrom<Change>(
      { atMs, kind: 'slow', worker, factor: 0.25 },
      { atMs, kind: 'drain', worker },
      { atMs, kind: 'die', worker, toldAfterMs: 50 },
      { atMs, kind: 'router-dies', router: 1 },
    ),
  );

describe('runRouting', () => {
  it('ends every request, completed or lost, whatever changes', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 3 }), fc.integer(), (changes, seed) => {
        for (const create of [randomChoice, leastUnacknowledged, prequal()]) {
          const { arrived, completed, lost, latency } = run(small({ changes }), create, seed);
          expect(completed + lost).toBe(arrived);
          expect(latency.count).toBe(completed);
          if (!changes.some(({ kind }) => kind === 'die')) expect(lost).toBe(0);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('is the same for a seed, and another for another', () => {
    const [a, b, c] = [1, 1, 2].map((seed) => run(small(), randomChoice, seed));
    expect(a).toEqual(b);
    expect(a?.latency.meanMs).not.toBe(c?.latency.meanMs);
  });

  it('gives every chooser the same requests at the same times', () => {
    const requestsOf = (worker: number): [number, number][] => {
      const seen: [number, number][] = [];
      run(small({ predictionSigma: 0.3, stragglers: { share: 0.1, factor: 10 } }), (seat) => ({
        choose(predictedMs, nowMs) {
          seen.push([predictedMs, nowMs]);
          // Draws of a chooser disturb nobody.
          for (let draws = 0; draws < worker; draws++) seat.random.next();
          seat.probe(worker);
          return worker;
        },
      }));
      return seen;
    };
    expect(requestsOf(0)).toEqual(requestsOf(2));
  });

  it('ends the same requests at the same times however often workers send heartbeats', () => {
    const [a, b] = [5, 50].map(
      (statusPeriodMs) => run(small({ statusPeriodMs }), leastUnacknowledged).latency,
    );
    expect(a).toEqual(b);
  });

  it('takes hops and service into the latency, and tells the router after a hop back', () => {
    const acknowledged: number[] = [];
    const fixed = { kind: 'fixed', value: 4 } as const;
    const hop = { kind: 'fixed', value: 3 } as const;
    const scenario = small({
      work: fixed,
      dispatchMs: hop,
      acknowledgementMs: hop,
      load: 0.001,
      endMs: 5_000,
    });
    const { latency } = run(scenario, () => ({
      choose: (_predictedMs, nowMs) => {
        acknowledged.push(-nowMs);
        return 0;
      },
      acknowledged(_worker, end, snapshot, nowMs) {
        expect(end).toMatchObject({ sojournMs: 2, busyMs: 2 });
        expect(snapshot).toMatchObject({ takenAtMs: nowMs - 3, queuedMs: 0, queuedRequests: 0 });
        acknowledged.push(nowMs);
      },
    }));
    expect(latency.maxMs).toBeCloseTo(5);
    const perRequest = acknowledged.reduce((sum, ms) => sum + ms, 0) / latency.count;
    expect(perRequest).toBeCloseTo(8);
  });

  it('takes dispatches of a router to a worker in their order, and says the last that it saw', () => {
    const dispatched = new Map<number, number>();
    const ended: number[] = [];
    run(small({ routers: 1, load: 1.5, endMs: 200 }), () => ({
      choose: () => 0,
      dispatched: (_worker, sequence, predictedMs) => dispatched.set(sequence, predictedMs),
      acknowledged(_worker, end, snapshot) {
        ended.push(end.sequence);
        const seenMs = [...dispatched].filter(([sequence]) => sequence <= snapshot.lastSequenceSeen);
        expect(snapshot.enqueuedMs).toBeCloseTo(
          seenMs.reduce((sum, [, ms]) => sum + ms, 0),
          6,
        );
        expect(snapshot.queuedRequests).toBe(snapshot.lastSequenceSeen - end.sequence);
        const queuedMs = seenMs
          .filter(([sequence]) => sequence > end.sequence)
          .reduce((sum, [, ms]) => sum + ms, 0);
        expect(snapshot.queuedMs).toBeCloseTo(queuedMs, 6);
      },
    }));
    expect(ended.length).toBeGreaterThan(100);
    expect(ended).toEqual(ended.toSorted((a, b) => a - b));
  });

  it('sends heartbeats each period, in which what runs is drained', () => {
    const heard: number[] = [];
    let drained = 0;
    const scenario = small({ routers: 1, load: 2, work: { kind: 'fixed', value: 10 }, endMs: 2_000 });
    run(scenario, () => ({
      choose: () => 1,
      heard(worker, snapshot, nowMs) {
        if (worker !== 1) return;
        heard.push(nowMs);
        if (snapshot.queuedRequests === 0) return;
        expect(snapshot.queuedMs).toBeGreaterThan((snapshot.queuedRequests - 1) * 10);
        expect(snapshot.queuedMs).toBeLessThanOrEqual(snapshot.queuedRequests * 10);
        if (snapshot.queuedMs < snapshot.queuedRequests * 10 - 1) drained += 1;
      },
    }));
    expect(heard.length).toBe(100);
    expect(drained).toBeGreaterThan(50);
  });

  const probed: [string, Partial<RoutingScenario>, number][] = [
    ['an idle worker', { load: 0.01 }, 0],
    ['a worker that died', { changes: [{ atMs: 0, kind: 'die', worker: 2, toldAfterMs: 0 }] }, Number.NaN],
  ];
  it.each(probed)('answers a probe of %s', (_what, more, inFlight) => {
    const readings: number[] = [];
    run(small(more), (seat) => ({
      choose() {
        seat.probe(2);
        return 0;
      },
      probed: (_worker, reading) => readings.push(reading.requestsInFlight),
    }));
    if (Number.isNaN(inFlight)) expect(readings).toEqual([]);
    else expect(new Set(readings)).toEqual(new Set([inFlight]));
  });

  it('tells every router who is there: at the start and at each change', () => {
    const told: [number, Members][] = [];
    const changes: Change[] = [
      { atMs: 100, kind: 'join', worker: 2 },
      { atMs: 200, kind: 'die', worker: 1, toldAfterMs: 50 },
      { atMs: 300, kind: 'router-dies', router: 0 },
    ];
    run(small({ changes }), ({ router }) => ({
      choose: () => 0,
      membersChanged: (members, nowMs) => {
        if (router === 1) told.push([nowMs, members]);
      },
    }));
    expect(told).toEqual([
      [0, { isLive: [true, true, false], routers: [0, 1] }],
      [100, { isLive: [true, true, true], routers: [0, 1] }],
      [250, { isLive: [true, false, true], routers: [0, 1] }],
      [300, { isLive: [true, false, true], routers: [1] }],
    ]);
  });

  it('gives a dead router no more requests', () => {
    const last = [0, 0];
    run(small({ changes: [{ atMs: 500, kind: 'router-dies', router: 0 }] }), ({ router }) => ({
      choose(_predictedMs, nowMs) {
        last[router] = nowMs;
        return 0;
      },
    }));
    expect(last[0]).toBeLessThanOrEqual(500);
    expect(last[1]).toBeGreaterThan(900);
  });

  it('has a longer tail with bursts at the same load', () => {
    const steady = textbook(5, 0.5, { endMs: 20_000 });
    const bursty = { ...steady, arrivals: { kind: 'bursts', factor: 4, onMs: 50, offMs: 200 } } as const;
    const [a, b] = [steady, bursty].map((scenario) => run(scenario, randomChoice).latency.quantileMs(0.99));
    expect(b).toBeGreaterThan(2 * (a ?? 0));
  });

  it('counts stragglers into the load', () => {
    const scenario = textbook(5, 0.5, { endMs: 40_000, stragglers: { share: 0.01, factor: 20 } });
    const { utilisation } = run(scenario, randomChoice);
    expect(utilisation.reduce((sum, each) => sum + each, 0) / 5).toBeCloseTo(0.5, 1);
  });

  const refused: [Partial<RoutingScenario>, string][] = [
    [{ load: 0 }, 'load is a number above 0, not 0'],
    [{ speeds: [1, Number.NaN, 1] }, 'speed is a number above 0, not NaN'],
    [{ pools: 2 }, '3 workers are not parted evenly into 2 pools'],
    [{ routerShares: [1] }, '2 routers have 1 shares'],
    [
      { changes: [{ atMs: 0, kind: 'drain', worker: 3 }] },
      'a change of worker 3: there are those from 0 to 2',
    ],
  ];
  it.each(refused)('refuses %j', (more, message) => {
    expect(() => run(small(more), toFirst)).toThrow(message);
  });

  it('refuses a choice of nobody', () => {
    expect(() => run(small(), () => ({ choose: () => 3 }))).toThrow('chose worker 3 of 3');
  });
});
