import { describe, expect, it } from 'vitest';
import {
  type Choice,
  chooseTarget,
  compareVersions,
  type ModelWanted,
  type TargetWanted,
} from '../../../../src/core/routing/choose.ts';
import { FleetState } from '../../../../src/core/routing/fleet-state.ts';
import type { WorkerStatus } from '../../../../src/core/routing/slot.ts';
import { slotAck, workerStatus } from './routing.fixture.ts';

const target: TargetWanted = { accelerator: 'gpu', kernel: 'dense', memory: 'host', fallback: ['cpu'] };
const model: ModelWanted = { family: 'ranker', version: undefined, variant: 'baseline', isPinned: false };
const poolsOf = (accelerator: string): string[] =>
  ({ gpu: ['a', 'a-spot'], cpu: ['cpu'] })[accelerator] ?? [];

function fleet(...statuses: Partial<WorkerStatus>[]): FleetState {
  const state = new FleetState({ statusStaleMs: 1_000, creditsMax: 100 });
  for (const fields of statuses) state.applyStatus(workerStatus(fields), 0);
  return state;
}

function choose(
  state: FleetState,
  nowMs = 0,
  wanted: Partial<TargetWanted> = {},
  of: Partial<ModelWanted> = {},
): Choice {
  return chooseTarget(state, poolsOf, { ...target, ...wanted }, { ...model, ...of }, 1, nowMs, () => 0.5);
}

describe('filter', () => {
  it('takes the leaf’s own class while it has a live worker', () => {
    const choice = choose(fleet({ pool: 'a', worker: 'g' }, {}));
    expect(choice).toMatchObject({ status: 'chosen', target: { accelerator: 'gpu', fallback: undefined } });
  });

  it('falls back in the leaf’s order, and says why', () => {
    expect(choose(fleet({}))).toMatchObject({
      status: 'chosen',
      target: { accelerator: 'cpu', fallback: 'no live worker of gpu', degradation: undefined },
    });
  });

  it('has no target where nobody lives, and names whom it looked for', () => {
    expect(choose(fleet())).toEqual({
      status: 'no-worker',
      reason: 'no live worker of gpu, cpu serves ranker (baseline)',
    });
  });

  it.each([
    ['a worker not heard of for longer than the limit', fleet({}), 1_001, {}],
    ['a version that nobody has', fleet({}), 0, { version: '9', isPinned: true }],
    ['a variant that nobody has', fleet({}), 0, { variant: 'enhanced' as const }],
    ['a family that nobody has', fleet({}), 0, { family: 'other' }],
  ])('passes over %s', (_name, state, nowMs, of) => {
    expect(choose(state, nowMs, {}, of).status).toBe('no-worker');
  });

  it('prefers workers with the kernel, takes others where none has it, and says so', () => {
    const both = fleet(
      { pool: 'a', worker: 'x', kernels: ['dense'] },
      { pool: 'a', worker: 'y', slots: [1], kernels: ['sparse'] },
    );
    expect(choose(both, 0, { kernel: 'sparse' })).toMatchObject({
      target: { slot: { partition: 1 }, fallback: undefined },
    });
    expect(choose(fleet({ pool: 'a' }), 0, { kernel: 'sparse' })).toMatchObject({
      target: {
        kernel: 'dense',
        fallback: 'no live worker of gpu has kernel sparse',
        degradation: 'kernel dense computed it in place of sparse',
      },
    });
    expect(choose(fleet({ pool: 'a' }), 0, { memory: 'hbm' })).toMatchObject({
      target: { memory: 'host', fallback: 'the worker has no memory domain hbm' },
    });
  });

  it('serves the newest version of the variant unless one is asked for', () => {
    const models = ['2', '10', '9'].map((version) => ({
      family: 'ranker',
      version,
      variant: 'baseline' as const,
      isPublished: false,
    }));
    expect(choose(fleet({ models }))).toMatchObject({ target: { version: '10' } });
    expect(choose(fleet({ models }), 0, {}, { version: '9' })).toMatchObject({ target: { version: '9' } });
    expect(compareVersions('10', '9')).toBeGreaterThan(0);
  });
});

describe('versions', () => {
  it('are in one order, in which text stands below the numbers', () => {
    const sorted = ['alpha', 'beta', '1', '3', '20'];
    for (const [place, version] of sorted.entries())
      for (const [other, second] of sorted.entries())
        expect(Math.sign(compareVersions(version, second)), `${version} ${second}`).toBe(
          Math.sign(place - other),
        );
  });

  const served = (version: string, isPublished: boolean) =>
    ({ family: 'ranker', version, variant: 'baseline', isPublished }) as const;
  const models = [served('1', false), served('3', true)];

  it('that were published serve who names them, and nobody else', () => {
    expect(choose(fleet({ models }))).toMatchObject({ target: { version: '1' } });
    expect(choose(fleet({ models }), 0, {}, { version: '3' })).toMatchObject({
      target: { version: '3', degradation: undefined },
    });
  });

  it('that a policy names are looked for in every class before another one answers, degraded', () => {
    const one = [served('1', false)];
    const elsewhere = fleet({ pool: 'a', worker: 'g', models: one }, { models });
    expect(choose(elsewhere, 0, {}, { version: '3' })).toMatchObject({
      target: { accelerator: 'cpu', version: '3', fallback: 'no live worker of gpu serves ranker@3' },
    });
    const nowhere = fleet({ pool: 'a', worker: 'g', models: one }, { models: one });
    expect(choose(nowhere, 0, {}, { version: '3' })).toMatchObject({
      target: {
        accelerator: 'gpu',
        version: '1',
        degradation: 'version 1 computed it in place of 3, which no live worker has',
      },
    });
    expect(choose(nowhere, 0, { kernel: 'sparse' }, { version: '3' })).toMatchObject({
      target: {
        degradation:
          'kernel dense computed it in place of sparse; version 1 computed it in place of 3, which no live worker has',
      },
    });
  });

  it('that a request pins are never replaced', () => {
    expect(choose(fleet({ models }), 0, {}, { version: '9', isPinned: true })).toEqual({
      status: 'no-worker',
      reason: 'no live worker of gpu, cpu serves ranker@9 (baseline)',
    });
  });
});

describe('score and pick', () => {
  it('takes the least expected wait plus service, at the worker’s speed', () => {
    const state = fleet(
      { worker: 'x', queuedPredictedMs: 30, speed: 4 },
      { worker: 'y', slots: [1], queuedPredictedMs: 10, speed: 1 },
    );
    expect(choose(state)).toMatchObject({ target: { slot: { partition: 0 } } });
  });

  it('lets a queue drain between snapshots', () => {
    const state = fleet(
      { worker: 'x', queuedPredictedMs: 20 },
      { worker: 'y', slots: [1], queuedPredictedMs: 10 },
    );
    const [first] = [...state.allSlots()];
    expect(first?.expectedWaitMs(0)).toBe(20);
    expect(first?.expectedWaitMs(15)).toBe(5);
    expect(first?.expectedWaitMs(50)).toBe(0);
  });

  it('counts own dispatches until a snapshot contains them', () => {
    const state = fleet({});
    const [slot] = [...state.allSlots()];
    if (slot === undefined) throw new Error('no slot');
    state.recordDispatch(slot, { sequence: 1, predictedMs: 7, dispatchedAtMs: 0, giveUpAtMs: 1_000 });
    state.recordDispatch(slot, { sequence: 2, predictedMs: 5, dispatchedAtMs: 0, giveUpAtMs: 1_000 });
    expect(slot.expectedWaitMs(0)).toBe(12);
    state.applyAck(slotAck({ lastSequenceSeen: 1, queuedPredictedMs: 7 }), 3);
    expect(slot.expectedWaitMs(3)).toBe(12);
    state.applyAck(
      slotAck({ lastSequenceSeen: 2, completed: [1, 2], sojournMs: [1, 1], queuedPredictedMs: 0 }),
      4,
    );
    expect(slot.expectedWaitMs(4)).toBe(0);
    expect(slot.credits.outstanding).toBe(0);
  });

  it('takes a worker of another router only where its own would be some services later', () => {
    const state = fleet({ worker: 'x', batchRequests: 9 }, { worker: 'y', slots: [1] });
    state.routersAre('a', ['b'], 0);
    const [own, foreign] = ['x', 'y'].map((worker) =>
      state.slotsOf('cpu').find(({ status }) => status.worker === worker),
    );
    if (own === undefined || foreign === undefined) throw new Error('no slot');
    const send = (sequence: number): void =>
      state.recordDispatch(own, { sequence, predictedMs: 1, dispatchedAtMs: 0, giveUpAtMs: 1_000 });
    for (let sequence = 1; sequence <= 3; sequence += 1) send(sequence);
    expect(choose(state)).toMatchObject({ target: { slot: own } });
    send(4);
    expect(choose(state)).toMatchObject({ target: { slot: foreign } });
  });

  it('waits for a credit rather than move to another class', () => {
    const state = fleet({ pool: 'a', worker: 'g' }, {});
    const gpu = state.slotsOf('a')[0];
    if (gpu === undefined) throw new Error('no slot');
    for (let sequence = 1; gpu.credits.available(0); sequence += 1)
      state.recordDispatch(gpu, { sequence, predictedMs: 1, dispatchedAtMs: 0, giveUpAtMs: 100 });
    expect(choose(state)).toEqual({ status: 'no-credit' });
    expect(state.sweep(100)).toBe(2);
    expect(choose(state, 100).status).toBe('chosen');
  });
});

describe('who holds a slot', () => {
  it('is the last incarnation that claimed it; a late heartbeat or acknowledgement of another changes nothing', () => {
    const state = fleet({ incarnation: 'old', sequence: 9 });
    state.applyStatus(workerStatus({ incarnation: 'new', sequence: 1 }), 10);
    expect(state.applyAck(slotAck({ incarnation: 'old', queuedPredictedMs: 99 }), 11)).toBe(false);
    expect(state.applyAck(slotAck({ incarnation: 'new', queuedPredictedMs: 5 }), 11)).toBe(true);
    state.applyStatus(workerStatus({ incarnation: 'new', sequence: 1, kernels: ['late'] }), 12);
    expect([...state.allSlots()][0]?.status.kernels).toEqual(['dense']);
  });

  it('is nobody once the worker let it go or left', () => {
    const state = fleet({ slots: [0, 1] });
    state.applyStatus(workerStatus({ sequence: 2, slots: [1] }), 5);
    expect(
      state
        .slotsOf('cpu')
        .filter((slot) => state.isLive(slot, 5))
        .map((slot) => slot.partition),
    ).toEqual([1]);
    state.removeWorker('w1', 10);
    expect(state.slotsOf('cpu').some((slot) => state.isLive(slot, 5))).toBe(false);
  });
});
