import { describe, expect, it } from 'vitest';
import {
  isApart,
  NO_WORKER_UTILISATION,
  predictLatencyMs,
  projectUtilisation,
} from '../../../../src/core/rollout/projection.ts';
import type { TargetWanted } from '../../../../src/core/routing/choose.ts';
import { FleetState } from '../../../../src/core/routing/fleet-state.ts';
import type { WorkerStatus } from '../../../../src/core/routing/slot.ts';
import { workerStatus } from '../routing/routing.fixture.ts';

const NOW_MS = 1_000;
const STALE_MS = 500;

function fleetOf(...workers: readonly WorkerStatus[]): FleetState {
  const fleet = new FleetState({ statusStaleMs: STALE_MS, creditsMax: 1 });
  for (const status of workers) fleet.applyStatus(status, NOW_MS);
  return fleet;
}

const poolsOf = (accelerator: string): readonly string[] =>
  ({ cpu: ['cpu', 'cpu-spare'], gpu: ['gpu'] })[accelerator] ?? [];
const target = (accelerator: string, ...fallback: string[]): TargetWanted => ({
  accelerator,
  kernel: 'dense',
  memory: 'host',
  fallback,
});

describe('a predicted latency', () => {
  const model = { family: 'ranker', version: undefined, variant: 'baseline', isPinned: false } as const;
  it.each([
    { what: 'service at the speed of the target', workers: [workerStatus({ speed: 2 })], expected: 5 },
    {
      what: 'and the wait for its queue',
      workers: [workerStatus({ speed: 2, queuedPredictedMs: 8 })],
      expected: 9,
    },
    {
      what: 'on the best slot of the class',
      workers: [
        workerStatus({ queuedPredictedMs: 50 }),
        workerStatus({ pool: 'cpu-spare', worker: 'w2', queuedPredictedMs: 3 }),
      ],
      expected: 13,
    },
    {
      what: 'of the first class that is alive',
      workers: [workerStatus({ pool: 'gpu', worker: 'g1', speed: 10 })],
      expected: 1,
    },
    { what: 'of nobody', workers: [], expected: undefined },
    { what: 'of nobody who has the model', workers: [workerStatus({ models: [] })], expected: undefined },
  ])('is $what', ({ workers, expected }) => {
    const fleet = fleetOf(...workers);
    expect(predictLatencyMs(fleet, poolsOf, target('cpu', 'gpu'), model, 10, NOW_MS)).toBe(expected);
  });

  it('minds no credits', () => {
    const fleet = fleetOf(workerStatus());
    const slot = fleet.slotsOf('cpu')[0];
    if (slot === undefined) throw new Error('no slot');
    fleet.recordDispatch(slot, { sequence: 1, predictedMs: 7, dispatchedAtMs: NOW_MS, giveUpAtMs: 9_999 });
    expect(slot.credits.available(NOW_MS)).toBe(false);
    expect(predictLatencyMs(fleet, poolsOf, target('cpu'), model, 10, NOW_MS)).toBe(17);
  });
});

describe('two predictions', () => {
  it.each([
    [100, 105, false],
    [100, 105.1, true],
    [100, 95, false],
    [100, 94.9, true],
    [0, 0, false],
    [0, 0.1, true],
    [undefined, 5, true],
    [5, undefined, true],
    [undefined, undefined, false],
  ])('of %s and %s ms are apart: %s', (stableMs, candidateMs, expected) => {
    expect(isApart(stableMs, candidateMs)).toBe(expected);
  });
});

describe('a projected utilisation', () => {
  it.each([
    { what: 'work per time over speed', workers: [workerStatus({ speed: 2 })], expected: { cpu: 0.25 } },
    {
      what: 'a worker once, however many slots it has',
      workers: [workerStatus({ slots: [0, 1, 2, 3] })],
      expected: { cpu: 0.5 },
    },
    {
      what: 'pools of a class by what they can do',
      workers: [workerStatus(), workerStatus({ pool: 'cpu-spare', worker: 'w2', speed: 3 })],
      expected: { cpu: 0.125, 'cpu-spare': 0.125 },
    },
    {
      what: 'a fallback, where nobody of the class is alive',
      workers: [workerStatus({ pool: 'gpu', worker: 'g1', speed: 10 })],
      expected: { gpu: 0.05 },
    },
    {
      what: 'far too much, where nobody is there at all',
      workers: [],
      expected: { cpu: NO_WORKER_UTILISATION, 'cpu-spare': NO_WORKER_UTILISATION },
    },
  ])('is $what', ({ workers, expected }) => {
    const work = [{ target: target('cpu', 'gpu'), workMs: 500 }];
    expect(projectUtilisation(fleetOf(...workers), poolsOf, work, 1_000, NOW_MS)).toEqual(expected);
  });

  it('adds up leaves, and leaves out dead workers and leaves without work', () => {
    const fleet = fleetOf(workerStatus());
    fleet.applyStatus(workerStatus({ worker: 'w2', slots: [1], speed: 9 }), NOW_MS - STALE_MS - 1);
    const work = [
      { target: target('cpu'), workMs: 100 },
      { target: target('cpu'), workMs: 150 },
      { target: target('gpu'), workMs: 0 },
    ];
    expect(projectUtilisation(fleet, poolsOf, work, 1_000, NOW_MS)).toEqual({ cpu: 0.25 });
    expect(projectUtilisation(fleet, poolsOf, work, 0, NOW_MS)).toEqual({});
  });
});
