import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planBatch } from '../../../../src/core/batching/plan.ts';
import { type Work, WorkQueue } from '../../../../src/core/batching/work-queue.ts';

function work(fields: Partial<Work<string>>): Work<string> {
  return {
    deadlineMs: 100,
    optional: false,
    batchKey: 'a',
    candidates: 1,
    predictedMs: 1,
    payload: '',
    ...fields,
  };
}

const anyWork = fc.record({
  deadlineMs: fc.integer({ min: 0, max: 50 }),
  optional: fc.boolean(),
  batchKey: fc.constantFrom('a', 'b'),
  candidates: fc.integer({ min: 0, max: 100 }),
  predictedMs: fc.integer({ min: 0, max: 9 }),
});

describe('the queue of a worker', () => {
  it('gives baseline before optional work, the earliest deadline first, ties in order of arrival', () => {
    fc.assert(
      fc.property(fc.array(anyWork, { maxLength: 60 }), (items) => {
        const queue = new WorkQueue<string>();
        for (const [index, item] of items.entries()) queue.push(work({ ...item, payload: String(index) }));
        const expected = items
          .map((item, index) => ({ ...item, index }))
          .sort(
            (a, b) =>
              Number(a.optional) - Number(b.optional) || a.deadlineMs - b.deadlineMs || a.index - b.index,
          );
        const got: number[] = [];
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) got.push(Number(next.payload));
        expect(got).toEqual(expected.map(({ index }) => index));
      }),
    );
  });

  it('knows the sum of predicted work through pushes, pops and removals', () => {
    fc.assert(
      fc.property(fc.array(anyWork, { maxLength: 40 }), fc.integer({ min: 0, max: 40 }), (items, pops) => {
        const queue = new WorkQueue<string>();
        for (const item of items) queue.push(work(item));
        const left = [...items];
        for (let i = 0; i < pops; i += 1) {
          const popped = queue.pop();
          if (popped !== undefined)
            left.splice(
              left.findIndex(
                (item) =>
                  item.deadlineMs === popped.deadlineMs &&
                  item.predictedMs === popped.predictedMs &&
                  item.optional === popped.optional,
              ),
              1,
            );
        }
        const removed = queue.remove((candidate) => candidate.batchKey === 'b');
        const kept = left.length - removed.length;
        expect(queue.length).toBe(kept);
        const sum =
          left.reduce((total, item) => total + item.predictedMs, 0) -
          removed.reduce((total, item) => total + item.predictedMs, 0);
        expect(queue.predictedMs).toBeCloseTo(sum, 6);
      }),
    );
  });
});

describe('a batch', () => {
  const limits = { requestsMax: 4, candidatesMax: 100, msMax: 8 };
  const costMs = (requests: number, candidates: number): number => requests + candidates / 10;

  it('drops what expired, and takes the first whatever it costs', () => {
    const queue = new WorkQueue<string>();
    queue.push(work({ deadlineMs: 5, payload: 'late' }));
    queue.push(work({ deadlineMs: 11, candidates: 500, payload: 'big' }));
    const plan = planBatch(queue, limits, 10, costMs);
    expect(plan.expired.map(({ payload }) => payload)).toEqual(['late']);
    expect(plan.batch.map(({ payload }) => payload)).toEqual(['big']);
  });

  it('stops where one more would make the earliest deadline late', () => {
    const queue = new WorkQueue<string>();
    queue.push(work({ deadlineMs: 13, candidates: 10, payload: 'tight' }));
    queue.push(work({ deadlineMs: 90, candidates: 10, payload: 'loose' }));
    expect(planBatch(queue, limits, 10, costMs).batch.map(({ payload }) => payload)).toEqual(['tight']);
    expect(queue.length).toBe(1);
  });

  it('stops where one more would take longer than a batch may', () => {
    const queue = new WorkQueue<string>();
    for (const payload of ['first', 'second', 'third'])
      queue.push(work({ deadlineMs: 900, candidates: 20, payload }));
    const payloads = planBatch(queue, limits, 10, costMs).batch.map(({ payload }) => payload);
    expect(payloads).toEqual(['first', 'second']);
    expect(queue.length).toBe(1);
  });

  it('holds one key, the limits and the deadlines, and loses nothing', () => {
    fc.assert(
      fc.property(fc.array(anyWork, { maxLength: 60 }), fc.integer({ min: 0, max: 50 }), (items, nowMs) => {
        const queue = new WorkQueue<string>();
        for (const [index, item] of items.entries()) queue.push(work({ ...item, payload: String(index) }));
        const plan = planBatch(queue, limits, nowMs, costMs);
        for (const expired of plan.expired) expect(expired.deadlineMs).toBeLessThanOrEqual(nowMs);
        expect(plan.batch.length).toBeLessThanOrEqual(limits.requestsMax);
        expect(new Set(plan.batch.map(({ batchKey }) => batchKey)).size).toBeLessThanOrEqual(1);
        if (plan.batch.length > 1) {
          const candidates = plan.batch.reduce((sum, item) => sum + item.candidates, 0);
          expect(candidates).toBeLessThanOrEqual(limits.candidatesMax);
          expect(costMs(plan.batch.length, candidates)).toBeLessThanOrEqual(limits.msMax);
          const endsMs = nowMs + costMs(plan.batch.length, candidates);
          for (const item of plan.batch) expect(item.deadlineMs).toBeGreaterThanOrEqual(endsMs);
        }
        const seen = [...plan.expired, ...plan.batch].map(({ payload }) => payload);
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) seen.push(next.payload);
        expect(seen.map(Number).sort((a, b) => a - b)).toEqual(items.map((_, index) => index));
      }),
    );
  });
});
