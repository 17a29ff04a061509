import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { endings, onlyResult } from '../records.fixture.ts';
import { handDrivenModel, scored } from './model.fixture.ts';
import { startWorker } from './worker.fixture.ts';

const candidate = () => handDrivenModel({ version: '3' });

function start(model = candidate()) {
  const world = startWorker({ others: [model], config: { batchRequestsMax: 1 } });
  /** What the windows of the shadow say since the last call. */
  const shadow = () => world.windows.take().filter((window) => window.shadow);
  /** Answers what runs, and lets what follows begin. */
  const answer = async (): Promise<void> => {
    world.model.batches.shift()?.end();
    await world.turn();
  };
  return { ...world, candidate: model, shadow, answer };
}

describe('a version in shadow', () => {
  it('scores what another one answered, and nothing comes of it but statistics', async () => {
    const { candidate: model, take, turn, answer, windows, sent, clock } = start();
    const taken = take({ shadowVersion: '3' });
    await turn();
    expect(model.batches).toHaveLength(0);
    await answer();
    expect(onlyResult(taken)).toMatchObject({ outcome: 'SCORED', modelVersion: '1' });
    expect(model.batches).toHaveLength(1);
    model.batches[0]?.endWith({ items: [scored(2, 0.75)], computeMs: 7, bytesMoved: 30 });
    await clock.advanceBy(50);
    const [live, beside] = windows.take();
    expect(live).toMatchObject({ modelVersion: '1', shadow: false, outcomes: { SCORED: 1 }, arm: 'STABLE' });
    expect(beside).toMatchObject({
      ...{ modelVersion: '3', shadow: true, analysed: false, arm: 'CANARY', outcomes: {}, policyEpoch: 1 },
      ...{ shadowDropped: 0, bytesMoved: 30, heads: [{ name: 'ctr', count: 2, mean: 0.75 }] },
    });
    expect(beside?.heads[0]?.samples).toHaveLength(1);
    expect(endings(taken)).toBe(1);
    expect(sent.flatMap(({ completed }) => completed)).toEqual([1]);
  });

  it('runs by a kernel that can, where the one of the live version cannot', async () => {
    const model = handDrivenModel({ version: '3', kernels: ['dense'] });
    const { take, turn, answer, clock } = start(model);
    take({ shadowVersion: '3', kernel: 'sparse' });
    await turn();
    await answer();
    await clock.advanceBy(50);
    expect(model.batches.map(({ kernel }) => kernel)).toEqual(['dense']);
  });

  it('never runs while real work waits or runs, and is not counted as load', async () => {
    const { candidate: model, worker, take, turn, answer, clock } = start();
    take({ shadowVersion: '3' });
    take();
    take();
    await turn();
    await answer();
    await clock.advanceBy(100);
    expect(model.batches).toHaveLength(0);
    await answer();
    expect(model.batches).toHaveLength(0);
    await answer();
    await clock.advanceBy(30);
    expect(model.batches).toHaveLength(1);
    const { busyMs, running, queued } = worker.load();
    await clock.advanceBy(100);
    model.batches[0]?.end({ computeMs: 100 });
    await turn();
    expect(worker.load()).toMatchObject({ busyMs, running, queued });
  });

  it('lets real work begin at once', async () => {
    const { candidate: model, model: live, take, turn, answer } = start();
    take({ shadowVersion: '3' });
    await turn();
    await answer();
    expect(model.batches).toHaveLength(1);
    take();
    await turn();
    expect(live.batches).toHaveLength(1);
  });

  it('rests four times as long as it ran', async () => {
    const { candidate: model, take, turn, answer, clock } = start();
    for (let n = 0; n < 2; n += 1) {
      take({ shadowVersion: '3' });
      await turn();
      await answer();
    }
    expect(model.batches).toHaveLength(1);
    await clock.advanceBy(10);
    model.batches[0]?.end();
    await clock.advanceBy(39);
    expect(model.batches).toHaveLength(1);
    await clock.advanceBy(22);
    expect(model.batches).toHaveLength(2);
  });

  it('is dropped where no quiet moment comes: the oldest of too many, and what waited for a second', async () => {
    const { candidate: model, model: live, take, turn, shadow, clock } = start();
    for (let n = 0; n < 12; n += 1) take({ shadowVersion: '3', budgetRemainingMs: 60_000 });
    take({ budgetRemainingMs: 60_000 });
    for (let n = 0; n < 12; n += 1) {
      await turn();
      live.batches.shift()?.end();
    }
    await turn();
    expect(shadow()).toMatchObject([{ modelVersion: '3', shadowDropped: 4 }]);
    await clock.advanceBy(1_200);
    expect(shadow()).toMatchObject([{ shadowDropped: 8 }]);
    expect(model.batches).toHaveLength(0);
  });

  it('has nothing on a worker that is busy most of the time', async () => {
    const { candidate: model, model: live, take, turn, shadow, clock } = start();
    for (let n = 0; n < 40; n += 1) {
      take({ shadowVersion: '3', budgetRemainingMs: 60_000 });
      await turn();
      await clock.advanceBy(45);
      live.batches.shift()?.end({ computeMs: 45 });
      await clock.advanceBy(5);
      model.batches.shift()?.end();
    }
    const scoredEarly = shadow().reduce((sum, { heads }) => sum + (heads[0]?.count ?? 0), 0);
    expect(scoredEarly / 2).toBeLessThan(15);
  });

  it.each([
    [
      'fails',
      (model: ReturnType<typeof candidate>) =>
        model.batches[0]?.fail(new MillraceError('MODEL_FAILED', 'odd')),
    ],
    [
      'cannot score the request',
      (model: ReturnType<typeof candidate>) =>
        model.batches[0]?.end({ failed: new Map([[0, new MillraceError('NON_FINITE', 'NaN')]]) }),
    ],
  ])('that %s harms nobody, and goes on', async (_how, fail) => {
    const { candidate: model, take, turn, answer, shadow, clock, worker } = start();
    const taken = take({ shadowVersion: '3' });
    await turn();
    await answer();
    expect(worker.isUsing(model)).toBe(true);
    fail(model);
    await clock.advanceBy(50);
    expect(worker.isUsing(model)).toBe(false);
    expect(onlyResult(taken).outcome).toBe('SCORED');
    expect(shadow()).toEqual([]);
    take({ shadowVersion: '3' });
    await turn();
    await answer();
    expect(model.batches).toHaveLength(2);
  });

  it('that the worker has not any more is dropped', async () => {
    const { take, turn, answer, shadow } = start();
    take({ shadowVersion: '9' });
    await turn();
    await answer();
    expect(shadow()).toMatchObject([{ modelVersion: '9', shadowDropped: 1 }]);
  });

  it('is not fed with requests that the live version could not score', async () => {
    const { candidate: model, model: live, take, turn } = start();
    take({ shadowVersion: '3' });
    await turn();
    live.batches[0]?.end({ failed: new Map([[0, new MillraceError('NON_FINITE', 'NaN')]]) });
    await turn();
    expect(model.batches).toHaveLength(0);
  });
});
