import { describe, expect, it } from 'vitest';
import type { Dispatch } from '../../../../src/contracts/records.ts';
import type { OverloadOrder } from '../../../../src/core/overload/overload-order.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import { endings, onlyResult, type Recorded } from '../records.fixture.ts';
import { handDrivenModel, scored } from './model.fixture.ts';
import { startWorker } from './worker.fixture.ts';

const COST_MS = 3;
const BUDGET_MS = 80;
const URGENT = 1;

/** A device on which every request takes as long as predicted, one batch after another. */
function timedModel(clock: () => Clock) {
  return {
    ...handDrivenModel(),
    run: (items: readonly { scoreLimit: number }[]) =>
      new Promise<{ items: ReturnType<typeof scored>[]; computeMs: number; bytesMoved: number }>(
        (resolve) => {
          const computeMs = items.length * COST_MS;
          const answer = {
            items: items.map(({ scoreLimit }) => scored(scoreLimit)),
            computeMs,
            bytesMoved: 1,
          };
          clock().after(computeMs, () => resolve(answer));
        },
      ),
    predictMs: (requests: number) => requests * COST_MS,
  };
}

interface Load {
  slaMs: number;
  order?: OverloadOrder;
  /** Of what the device can do. */
  factor: number;
  forMs?: number;
}

/** A quarter of the requests is urgent, and half of them are worth four times as much as the others. */
async function run({ slaMs, order = 'strict', factor, forMs = 2_500 }: Load) {
  const started: { clock?: Clock } = {};
  const model = timedModel(() => started.clock ?? expect.unreachable('it runs before it is started'));
  const all = startWorker({ model, config: { overload: { slaMs, order } } });
  const { clock, take, worker } = all;
  started.clock = clock;
  const taken: Recorded<Dispatch>[] = [];
  const count = Math.round((forMs * factor) / COST_MS);
  let peak = { saturated: false };
  for (let index = 0; index < count; index += 1) {
    const priority = index % 4 === 0 ? URGENT : 8;
    const value = index % 8 < 4 ? 1 : 4;
    taken.push(take({ predictedMs: COST_MS, budgetRemainingMs: BUDGET_MS, priority, value }));
    await clock.advanceBy(COST_MS / factor);
    peak = { saturated: peak.saturated || worker.overload()?.isBaselineShed === true };
  }
  await clock.advanceBy(10_000);
  const answered = taken.filter((one) => {
    const { outcome, late } = onlyResult(one);
    return outcome === 'SCORED' && !late;
  });
  const busyShare = (answered.length * COST_MS) / forMs;
  return { ...all, taken, answered, busyShare, peak, sheddingLevel: worker.takeSheddingLevel() };
}

function shareOf(some: readonly Recorded<Dispatch>[], all: readonly Recorded<Dispatch>[], priority: number) {
  const isOf = ({ value }: Recorded<Dispatch>): boolean => value.priority === priority;
  return some.filter(isOf).length / all.filter(isOf).length;
}

describe('a worker that is asked for twice what it can do', () => {
  it('spends its time on what is answered in time, and without the rules on what is not', async () => {
    const [ruled, unruled] = [await run({ slaMs: 100, factor: 2 }), await run({ slaMs: 0, factor: 2 })];
    expect(ruled.busyShare).toBeGreaterThan(0.95);
    expect(unruled.busyShare).toBeLessThan(0.5);
  });

  it('says what share of the work it sheds, since it was last asked', async () => {
    const { sheddingLevel, worker } = await run({ slaMs: 100, factor: 2 });
    expect(sheddingLevel).toBeGreaterThan(0.4);
    expect(sheddingLevel).toBeLessThan(0.6);
    expect(worker.takeSheddingLevel()).toBe(0);
    expect((await run({ slaMs: 100, factor: 0.9 })).sheddingLevel).toBe(0);
    expect((await run({ slaMs: 0, factor: 2 })).sheddingLevel).toBe(0);
  });

  it('answers the higher priority first', async () => {
    const { answered, taken } = await run({ slaMs: 100, factor: 2 });
    expect(shareOf(answered, taken, URGENT)).toBeGreaterThan(0.9);
    expect(shareOf(answered, taken, 8)).toBeLessThan(0.5);
  });

  it('answers by value for the cost alone where the order is one-price', async () => {
    const { answered } = await run({ slaMs: 100, factor: 2, order: 'one-price' });
    const worth = answered.filter(({ value }) => value.value === 4).length;
    expect(worth / answered.length).toBeGreaterThan(0.9);
  });

  it('ends each request once, with a reason, acknowledges it, and counts what it shed', async () => {
    const { taken, telemetry, acks, sent, clock } = await run({ slaMs: 100, factor: 2 });
    expect(taken.every((one) => endings(one) === 1)).toBe(true);
    const shed = taken.map(onlyResult).filter(({ outcome }) => outcome !== 'SCORED');
    const refused = shed.filter(({ outcome }) => outcome === 'REJECTED');
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'OVERLOADED', retryable: true });
    const counted = (reason: string) =>
      telemetry.value('millrace_shed_requests_total', { pool: 'cpu', reason }) ?? 0;
    expect(counted('refused')).toBe(refused.length);
    const unfinished = shed.filter(({ reason }) => reason?.message.includes('too few for'));
    expect(counted('cannot-finish')).toBe(unfinished.length);
    acks.flush();
    await clock.advanceBy(10);
    const acknowledged = sent.flatMap(({ completed }) => completed);
    expect(new Set(acknowledged)).toEqual(new Set(taken.map(({ value }) => value.sequence)));
    expect(acknowledged).toHaveLength(taken.length);
  });

  it('says that it sheds, for as long as it does', async () => {
    const { peak, worker } = await run({ slaMs: 100, factor: 2 });
    expect(peak.saturated).toBe(true);
    expect(worker.overload()).toMatchObject({ isOverloaded: false, isBaselineShed: false });
  });
});

describe('a worker with rules of overload that has time for all', () => {
  it.each([0.3, 0.9])('sheds nothing at %d of what it can do', async (factor) => {
    const { answered, taken, peak } = await run({ slaMs: 100, factor, forMs: 2_000 });
    expect(answered).toHaveLength(taken.length);
    expect(peak.saturated).toBe(false);
  });
});

describe('a request that its budget leaves too little time for', () => {
  const fields = { predictedMs: 30, budgetRemainingMs: 20 };

  it('is not computed where rules of overload are set, and says why', async () => {
    const { model, take, turn } = startWorker({ config: { overload: { slaMs: 100, order: 'strict' } } });
    const taken = take(fields);
    await turn();
    expect(model.batches).toHaveLength(0);
    expect(onlyResult(taken)).toMatchObject({
      outcome: 'EXPIRED',
      reason: {
        code: 'BUDGET_EXHAUSTED',
        message:
          '20.0 ms were left of the budget of 100 ms after the queue of w1, too few for about 30.0 ms of compute',
      },
    });
  });

  it('is tried where none are', async () => {
    const { model, take, turn, worker } = startWorker();
    take(fields);
    await turn();
    expect(model.batches).toHaveLength(1);
    expect(worker.overload()).toBeUndefined();
  });
});

describe('enhanced requests under the strict order', () => {
  it('wait for all others, as they do without the rules', async () => {
    const { model, take, turn } = startWorker({
      config: { batchRequestsMax: 1, overload: { slaMs: 100, order: 'strict' } },
    });
    take();
    await turn();
    const enhanced = take({ variant: 'ENHANCED', budgetRemainingMs: 40, value: 100 });
    const baseline = take({ budgetRemainingMs: 80 });
    model.batches[0]?.end();
    await turn();
    model.batches[1]?.end();
    await turn();
    expect([endings(baseline), endings(enhanced)]).toEqual([1, 0]);
  });
});
