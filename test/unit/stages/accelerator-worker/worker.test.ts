import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { codecs, endings, onlyResult, scoreRequest } from '../records.fixture.ts';
import { handDrivenModel, scored } from './model.fixture.ts';
import { startWorker } from './worker.fixture.ts';

describe('a version that the worker has not', () => {
  it('is replaced by the newest of the folder where the policy named it, and the answer says so', async () => {
    const { model, take, turn, windows } = startWorker();
    const taken = take({ modelVersion: '3' });
    await turn();
    model.batches[0]?.end();
    await turn();
    expect(onlyResult(taken)).toMatchObject({
      outcome: 'DEGRADED',
      modelVersion: '1',
      candidatesScored: 2,
      reason: { message: 'version 1 computed it in place of 3, which the worker lacks' },
    });
    expect(windows.take()).toMatchObject([{ modelVersion: '1', outcomes: { DEGRADED: 1 } }]);
  });

  it('is refused where the request pins it', async () => {
    const { take, turn } = startWorker();
    const payload = codecs.for('ScoreRequest').encode(scoreRequest({ model: 'ranker@3' }));
    const taken = take({ modelVersion: '3', payload });
    await turn();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'REJECTED', reason: { code: 'UNKNOWN_MODEL' } });
  });
});

describe('a kernel that the worker has, and that cannot run the model', () => {
  it('is replaced by one that can, and the answer says so', async () => {
    const { model, take, turn, windows } = startWorker({ model: handDrivenModel({ kernels: ['dense'] }) });
    const taken = take({ kernel: 'sparse' });
    await turn();
    expect(model.batches[0]?.kernel).toBe('dense');
    model.batches[0]?.end();
    await turn();
    expect(onlyResult(taken)).toMatchObject({
      outcome: 'DEGRADED',
      target: { kernel: 'dense' },
      reason: { message: 'kernel dense computed it in place of sparse, which cannot run ranker@1' },
    });
    expect(windows.take()).toMatchObject([{ kernel: 'dense', outcomes: { DEGRADED: 1 } }]);
  });

  it('is not replaced where it can', async () => {
    const { model, take, turn } = startWorker({ model: handDrivenModel({ kernels: ['dense', 'sparse'] }) });
    const taken = take({ kernel: 'sparse' });
    await turn();
    expect(model.batches[0]?.kernel).toBe('sparse');
    model.batches[0]?.end();
    await turn();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'SCORED', target: { kernel: 'sparse' } });
  });
});

describe('a dispatch that cannot be handled', () => {
  it('is not counted as held: its router is known for having dispatched of late, and for nothing else', () => {
    const { acks, take } = startWorker();
    const broken = { payload: Buffer.from('broken') };
    for (let tries = 0; tries < 3; tries += 1) expect(() => take(broken)).toThrow('the decoder broke');
    expect(acks.known).toBe(1);
  });
});

describe('zeros that a kernel skipped', () => {
  it('are counted, beside what it did not skip', async () => {
    const { model, take, turn, telemetry } = startWorker();
    take({ kernel: 'sparse' });
    await turn();
    const density = { values: 100, nonZeros: 7 };
    model.batches[0]?.endWith({ items: [scored(2)], computeMs: 1, bytesMoved: 1, density });
    await turn();
    const counted = (value: string) =>
      telemetry.value('millrace_sparse_values_total', { pool: 'cpu', model: 'ranker', value });
    expect([counted('zero'), counted('non-zero')]).toEqual([93, 7]);
  });
});

describe('a result that no record can hold', () => {
  it('makes a dead letter of its own request, and of none beside it', async () => {
    const { clock, model, take, turn, windows, sent } = startWorker();
    const [large, small] = [take(), take()];
    await turn();
    const head = { name: 'h', values: new Float32Array(8_192) };
    const scores = { heads: new Array(40).fill(head), scores: new Float32Array(8_192) };
    model.batches[0]?.endWith({
      items: [{ status: 'scored', scores }, scored(2)],
      computeMs: 4,
      bytesMoved: 1,
    });
    await turn();
    expect(endings(large)).toBe(1);
    expect(large.letters).toMatchObject([
      { code: 'TOO_LARGE', message: expect.stringMatching(/result cannot be sent/) },
    ]);
    expect(onlyResult(small)).toMatchObject({ outcome: 'SCORED' });
    expect(windows.take()).toMatchObject([{ outcomes: { SCORED: 1, DEAD_LETTERED: 1 } }]);
    await clock.advanceBy(2);
    expect(sent.flatMap(({ completed }) => completed)).toHaveLength(2);
  });
});

describe('a model in use', () => {
  it('is one that a request waits for, or that computes', async () => {
    const { worker, model, take, turn } = startWorker({ config: { batchRequestsMax: 1 } });
    expect(worker.isUsing(model)).toBe(false);
    take();
    take();
    expect(worker.isUsing(model)).toBe(true);
    await turn();
    model.batches[0]?.end();
    await turn();
    expect(worker.isUsing(model)).toBe(true);
    model.batches[1]?.end();
    await turn();
    expect(worker.isUsing(model)).toBe(false);
  });
});

describe('batches', () => {
  it('take what came in one turn together, within their limits, and score each request to its limit', async () => {
    const { model, take, turn } = startWorker();
    const taken = [1, 2, 3, 2, 1].map((scoreLimit) => take({ scoreLimit, baselineCandidates: scoreLimit }));
    await turn();
    expect(model.batches[0]?.items.map(({ scoreLimit }) => scoreLimit)).toEqual([1, 2, 3, 2]);
    expect(model.batches[0]?.kernel).toBe('dense');
    model.batches[0]?.end();
    await turn();
    expect(model.batches[1]?.items).toHaveLength(1);
    model.batches[1]?.end();
    await turn();
    expect(taken.map((each) => onlyResult(each))).toMatchObject(
      [1, 2, 3, 2, 1].map((candidatesScored) => ({ outcome: 'SCORED', late: false, candidatesScored })),
    );
  });

  it('run as many at once as the worker may, and no more', async () => {
    const { model, take, turn } = startWorker({ config: { batchesInFlightMax: 2, batchRequestsMax: 1 } });
    for (let n = 0; n < 5; n += 1) take();
    await turn();
    expect(model.batches).toHaveLength(2);
    model.batches[1]?.end();
    await turn();
    expect(model.batches).toHaveLength(3);
  });

  it('run the earliest deadline first, and baseline before the enhanced', async () => {
    const enhanced = handDrivenModel({ version: '2', variant: 'enhanced' });
    const { model, take, turn } = startWorker({ config: { batchRequestsMax: 1 }, others: [enhanced] });
    take({ modelVersion: '2', variant: 'ENHANCED', budgetRemainingMs: 10 });
    take({ budgetRemainingMs: 90, scoreLimit: 1 });
    take({ budgetRemainingMs: 30, scoreLimit: 2 });
    await turn();
    expect(model.batches[0]?.items[0]?.scoreLimit).toBe(2);
    model.batches[0]?.end();
    await turn();
    expect(model.batches[1]?.items[0]?.scoreLimit).toBe(1);
    expect(enhanced.batches).toHaveLength(0);
    model.batches[1]?.end();
    await turn();
    expect(enhanced.batches).toHaveLength(1);
  });

  it('mix no models and no kernels', async () => {
    const other = handDrivenModel({ version: '2' });
    const { model, take, turn } = startWorker({ others: [other], config: { batchesInFlightMax: 3 } });
    take();
    take({ modelVersion: '2' });
    take({ kernel: 'sparse' });
    await turn();
    expect([model.batches.length, other.batches.length]).toEqual([2, 1]);
  });
});

describe('the deadline', () => {
  it('is the budget at the dispatch, less the time in the topic, from the arrival on', async () => {
    const { clock, model, take, turn } = startWorker();
    take();
    await turn();
    const expiring = take({ budgetRemainingMs: 50 }, { inTopicMs: 20 });
    const living = take({ budgetRemainingMs: 51 }, { inTopicMs: 20 });
    await clock.advanceBy(30);
    model.batches[0]?.end();
    await turn();
    expect(onlyResult(expiring)).toMatchObject({
      outcome: 'EXPIRED',
      reason: { code: 'BUDGET_EXHAUSTED', retryable: true },
      timings: { queueMs: 30, computeMs: 0, inTopicMs: 20 },
    });
    expect(endings(living)).toBe(0);
    expect(model.batches[1]?.items).toHaveLength(1);
  });

  it('that is over at the arrival is answered before anything is computed', async () => {
    const { model, take, turn } = startWorker();
    const late = take({ budgetRemainingMs: 10 }, { inTopicMs: 10 });
    await turn();
    expect(onlyResult(late).reason?.message).toBe(
      'the budget of 100 ms ran out before compute, in the queue of w1',
    );
    expect(model.batches).toEqual([]);
  });

  it('that passes during compute makes the result late, and no less a result', async () => {
    const { clock, model, take, turn } = startWorker();
    const taken = take({ budgetRemainingMs: 20 });
    await turn();
    await clock.advanceBy(21);
    model.batches[0]?.end({ computeMs: 21 });
    await turn();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'SCORED', late: true, candidatesScored: 2 });
  });
});

describe('a request that cannot be scored', () => {
  it('for a model that the worker has not is refused', async () => {
    const { take, turn } = startWorker();
    const taken = take({ model: 'ads', modelVersion: '9' });
    await turn();
    expect(onlyResult(taken)).toMatchObject({
      outcome: 'REJECTED',
      reason: { code: 'UNKNOWN_MODEL', message: expect.stringContaining('ads@9') },
    });
  });

  it.each([
    ['its own fault is told as such', new MillraceError('NON_FINITE', 'NaN in user'), 'NON_FINITE', false],
    ['a fault of the model may pass', new Error('odd'), 'MODEL_FAILED', true],
  ])('fails alone in its batch: %s', async (_name, error, code, retryable) => {
    const { model, take, turn } = startWorker();
    const [first, second] = [take(), take()];
    await turn();
    model.batches[0]?.end({ failed: new Map([[1, error]]) });
    await turn();
    expect(onlyResult(first).outcome).toBe('SCORED');
    expect(onlyResult(second)).toMatchObject({ outcome: 'REJECTED', reason: { code, retryable } });
  });

  it('for a backend that forgets it in its answer is refused as a fault of the model', async () => {
    const { model, take, turn } = startWorker();
    const taken = take();
    await turn();
    model.batches[0]?.endWith({ items: [], computeMs: 1, bytesMoved: 0 });
    await turn();
    expect(onlyResult(taken).reason?.code).toBe('MODEL_FAILED');
  });
});

describe('a batch that fails', () => {
  it('is tried one by one, no more at once than the worker may, before anything else', async () => {
    const { model, take, turn } = startWorker();
    const taken = [1, 2, 3].map((scoreLimit) => take({ scoreLimit }));
    await turn();
    const next = take({ budgetRemainingMs: 20 });
    model.batches[0]?.fail();
    for (const scoreLimit of [1, 2, 3]) {
      await turn();
      const running = model.batches.at(-1);
      expect(running?.items.map((item) => item.scoreLimit)).toEqual([scoreLimit]);
      running?.end();
    }
    await turn();
    expect(taken.map((each) => onlyResult(each).outcome)).toEqual(['SCORED', 'SCORED', 'SCORED']);
    expect(model.batches).toHaveLength(5);
    expect(endings(next)).toBe(0);
  });

  it('again and again on one request makes a dead letter of that one', async () => {
    const { model, take, turn, sent, clock } = startWorker();
    const [poison, fine] = [take({ scoreLimit: 1 }), take()];
    await turn();
    model.batches[0]?.fail();
    await turn();
    for (let tries = 1; tries <= 4; tries += 1) {
      const alone = model.batches.at(-1);
      if (alone?.items[0]?.scoreLimit === 1) alone.fail();
      else alone?.end();
      await turn();
    }
    expect(onlyResult(fine).outcome).toBe('SCORED');
    expect(poison.letters).toEqual([
      { code: 'POISON', message: 'the model failed on it 3 times: the device is gone' },
    ]);
    expect(poison.finished).toEqual([]);
    await clock.advanceBy(10);
    expect(sent.flatMap(({ completed }) => completed).sort()).toEqual([1, 2]);
  });

  it('on one request, computed alone beside others, ends it alike: as a dead letter, after as many tries', async () => {
    const { model, worker, take, turn } = startWorker();
    const [poison, fine] = [take({ scoreLimit: 1, predictedMs: 5 }), take({ predictedMs: 3 })];
    await turn();
    const error = new MillraceError('MODEL_FAILED', 'the device is gone');
    model.batches[0]?.endWith({
      ...{ computeMs: 4, bytesMoved: 100 },
      items: [{ status: 'failed', error, alone: true }, scored(2)],
    });
    await turn();
    expect(onlyResult(fine).outcome).toBe('SCORED');
    expect(worker.load()).toMatchObject({ enqueuedPredictedMs: 8, completedPredictedMs: 3 });
    for (let tries = 2; tries <= 3; tries += 1) {
      expect(endings(poison)).toBe(0);
      expect(model.batches.at(-1)?.items.map(({ scoreLimit }) => scoreLimit)).toEqual([1]);
      model.batches.at(-1)?.fail(error);
      await turn();
    }
    expect(poison.letters).toEqual([
      { code: 'POISON', message: 'the model failed on it 3 times: the device is gone' },
    ]);
    expect(model.batches).toHaveLength(3);
  });

  it('is not tried again for what expired meanwhile', async () => {
    const { clock, model, take, turn } = startWorker();
    const taken = [take({ budgetRemainingMs: 20 }), take({ budgetRemainingMs: 90 })];
    await turn();
    await clock.advanceBy(30);
    model.batches[0]?.fail();
    await turn();
    expect(onlyResult(taken[0] ?? take()).outcome).toBe('EXPIRED');
    expect(model.batches).toHaveLength(2);
  });

  it('counts its work as done once, when it is done', async () => {
    const { model, worker, take, turn } = startWorker();
    take({ predictedMs: 3 });
    await turn();
    model.batches[0]?.fail();
    await turn();
    expect(worker.load()).toMatchObject({ running: 1, enqueuedPredictedMs: 3, completedPredictedMs: 0 });
    model.batches[1]?.end();
    await turn();
    expect(worker.load()).toMatchObject({ running: 0, enqueuedPredictedMs: 3, completedPredictedMs: 3 });
  });
});

describe('a dispatch whose request is in an unknown schema', () => {
  it('waits for the registry, and its budget goes on', async () => {
    const { clock, registry, model, take } = startWorker();
    const taken = take({ payload: Buffer.from('schema'), budgetRemainingMs: 2_000 });
    await clock.advanceBy(1_200);
    registry.away = false;
    await clock.advanceBy(600);
    expect(model.batches).toHaveLength(1);
    model.batches[0]?.end();
    await clock.advanceBy(0);
    expect(onlyResult(taken).timings.queueMs).toBeGreaterThanOrEqual(1_200);
  });

  it('is a dead letter where it cannot be read after all', async () => {
    const { clock, registry, take } = startWorker();
    const taken = take({ payload: Buffer.from('schema, then bad') });
    registry.away = false;
    await clock.advanceBy(600);
    expect(taken.letters).toEqual([
      { code: 'MALFORMED', message: 'the request inside the dispatch cannot be read: it is bad' },
    ]);
    expect(endings(taken)).toBe(1);
  });

  it('is a dead letter where working on it fails then', async () => {
    const { clock, registry, take } = startWorker();
    const taken = take({ payload: Buffer.from('schema, then broken') });
    registry.away = false;
    await clock.advanceBy(600);
    expect(taken.letters).toEqual([
      { code: 'POISON', message: 'failed after its schema was found: Error: the decoder broke' },
    ]);
    expect(endings(taken)).toBe(1);
  });

  it('is given up when its slot goes away', async () => {
    const { clock, registry, worker, model, take } = startWorker();
    const gone = take({ payload: Buffer.from('schema'), budgetRemainingMs: 9_000 }, { slot: 1 });
    const kept = take({ payload: Buffer.from('schema'), budgetRemainingMs: 9_000 }, { slot: 2 });
    await clock.advanceBy(100);
    worker.abandon((record) => record.partition === 1);
    expect([gone.abandonments, kept.abandonments]).toEqual([1, 0]);
    registry.away = false;
    await clock.advanceBy(1_000);
    expect(model.batches[0]?.items).toHaveLength(1);
    expect(endings(gone)).toBe(1);
  });
});

describe('a dispatch whose request cannot be read', () => {
  it('is a dead letter at once, acknowledged so that the router has its credit back', async () => {
    const { clock, sent, take } = startWorker();
    const taken = take({ payload: Buffer.from('no frame') });
    expect(taken.letters).toMatchObject([{ code: 'NO_FRAME' }]);
    await clock.advanceBy(10);
    expect(sent.map(({ completed }) => completed)).toEqual([[1]]);
  });
});

describe('a slot that goes away', () => {
  it('takes its queued work with it, and leaves what runs to be finished', async () => {
    const { worker, model, take, turn } = startWorker({ config: { batchRequestsMax: 1 } });
    const running = take({}, { slot: 1 });
    await turn();
    const queued = take({}, { slot: 1 });
    const others = take({}, { slot: 2 });
    worker.abandon((record) => record.partition === 1);
    expect([running, queued, others].map((each) => each.abandonments)).toEqual([0, 1, 0]);
    model.batches[0]?.end();
    await turn();
    model.batches[1]?.end();
    await turn();
    expect([running, queued, others].map((each) => endings(each))).toEqual([1, 1, 1]);
    expect(model.batches).toHaveLength(2);
  });

  it('takes along what is known of its routers: their next dispatch starts afresh', async () => {
    const { clock, worker, model, sent, take, turn } = startWorker({ config: { batchRequestsMax: 1 } });
    take({ sequence: 90 });
    await turn();
    take({ sequence: 91 });
    worker.abandon(() => true);
    model.batches[0]?.end();
    await clock.advanceBy(10);
    take({ sequence: 3 });
    await turn();
    model.batches[1]?.end();
    await clock.advanceBy(10);
    expect(sent.map(({ lastSequenceSeen }) => lastSequenceSeen)).toEqual([91, 3]);
  });

  it('takes along what waits to be tried alone', async () => {
    const { worker, model, take, turn } = startWorker();
    const [first, second] = [take({}, { slot: 1 }), take({}, { slot: 1 })];
    await turn();
    model.batches[0]?.fail();
    await turn();
    worker.abandon(() => true);
    expect([first.abandonments, second.abandonments]).toEqual([0, 1]);
    model.batches[1]?.end();
    await turn();
    expect(model.batches).toHaveLength(2);
    expect([endings(first), endings(second)]).toEqual([1, 1]);
  });
});

describe('the load', () => {
  it('tells queue, running batches, predicted work and the time of a batch', async () => {
    const { clock, worker, model, take, turn } = startWorker({ config: { batchRequestsMax: 1 } });
    take({ predictedMs: 3 });
    take({ predictedMs: 4 });
    take({ predictedMs: -1 });
    await turn();
    expect(worker.load()).toEqual({
      queued: 2,
      running: 1,
      queuedPredictedMs: 7,
      enqueuedPredictedMs: 7,
      completedPredictedMs: 0,
      busyMs: 0,
      speed: 1,
      serviceMs: 0,
      batchRequests: 1,
    });
    await clock.advanceBy(2);
    expect(worker.load()).toMatchObject({ queuedPredictedMs: 5 });
    await clock.advanceBy(8);
    expect(worker.load()).toMatchObject({ queuedPredictedMs: 4 });
    model.batches[0]?.end({ computeMs: 10 });
    await turn();
    expect(worker.load()).toMatchObject({
      queuedPredictedMs: 4,
      completedPredictedMs: 3,
      busyMs: 10,
      serviceMs: 10,
    });
    expect(worker.load().speed).toBeCloseTo(503 / 510);
    model.batches[1]?.end({ computeMs: 20 });
    await turn();
    expect(worker.load()).toMatchObject({
      queuedPredictedMs: 0,
      completedPredictedMs: 7,
      busyMs: 30,
      serviceMs: 11,
    });
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'counts a request that is predicted to take %d ms as none: it would stay in every sum',
    async (predictedMs) => {
      const { worker, model, take, turn } = startWorker({ config: { batchRequestsMax: 1 } });
      for (const each of [predictedMs, 3, 4]) take({ predictedMs: each });
      await turn();
      model.batches[0]?.end();
      await turn();
      model.batches[1]?.end();
      await turn();
      expect(worker.load()).toMatchObject({
        queuedPredictedMs: 4,
        enqueuedPredictedMs: 7,
        completedPredictedMs: 3,
      });
      for (const value of Object.values(worker.load())) expect(value).toSatisfy(Number.isFinite);
    },
  );

  const fits = [
    { predictedMs: 0, batchRequests: 8 },
    { predictedMs: 1, batchRequests: 8 },
    { predictedMs: 3, batchRequests: 6 },
    { predictedMs: 90, batchRequests: 1 },
  ];
  it.each(fits)(
    'asks for $batchRequests requests of $predictedMs ms each to fill a batch of 20 ms',
    async ({ predictedMs, batchRequests }) => {
      const config = { batchRequestsMax: 8, batchMsMax: 20 };
      const { worker, model, take, turn } = startWorker({ config });
      expect(worker.load().batchRequests).toBe(8);
      take({ predictedMs });
      take({ predictedMs });
      await turn();
      model.batches[0]?.end();
      await turn();
      expect(worker.load().batchRequests).toBe(batchRequests);
    },
  );

  it('runs no batch that is predicted to take longer than one may', async () => {
    const { model, take, turn } = startWorker({ config: { batchMsMax: 9 } });
    for (let n = 0; n < 4; n += 1) take({ scoreLimit: 1 });
    await turn();
    expect(model.batches[0]?.items).toHaveLength(3);
  });
});

describe('every dispatch', () => {
  it('ends exactly once and is acknowledged exactly once, whatever the model does', async () => {
    const { clock, model, sent, take } = startWorker({
      config: { batchesInFlightMax: 2, batchRequestsMax: 3 },
    });
    const taken = [];
    for (let n = 0; n < 60; n += 1) {
      taken.push(take({ budgetRemainingMs: 5 + ((n * 7) % 60), scoreLimit: 1 + (n % 3) }));
      await clock.advanceBy(1);
      const batch = model.batches.shift();
      if (n % 3 === 0) batch?.fail();
      else if (n % 3 === 1) batch?.end({ failed: new Map([[0, new Error('odd')]]) });
      else batch?.end();
    }
    for (let n = 0; n < 300; n += 1) {
      await clock.advanceBy(1);
      const batch = model.batches.shift();
      if (n % 2 === 0) batch?.fail();
      else batch?.end();
    }
    expect(taken.map((each) => endings(each))).toEqual(taken.map(() => 1));
    const completed = sent.flatMap((ack) => ack.completed).sort((a, b) => a - b);
    expect(completed).toEqual(taken.map((_, place) => place + 1));
  });
});
