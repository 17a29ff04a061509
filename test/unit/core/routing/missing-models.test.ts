import { describe, expect, it } from 'vitest';
import type { ModelWanted } from '../../../../src/core/routing/choose.ts';
import { FleetState } from '../../../../src/core/routing/fleet-state.ts';
import { missingModels } from '../../../../src/core/routing/missing-models.ts';
import type { VersionServed, WorkerStatus } from '../../../../src/core/routing/slot.ts';

const served = (version: string): VersionServed => ({
  family: 'ranker',
  version,
  variant: 'baseline',
  isPublished: true,
});

function fleet(...workers: { pool: string; versions: string[] }[]): FleetState {
  const state = new FleetState({ statusStaleMs: 1_000, creditsMax: 10 });
  workers.forEach(({ pool, versions }, place) => {
    const status: WorkerStatus = {
      pool,
      capacityClass: 'dedicated',
      accelerator: pool,
      worker: `w${place}`,
      incarnation: '1',
      sequence: 1,
      slots: [place],
      kernels: ['dense'],
      memories: ['host'],
      models: versions.map(served),
      speed: 1,
      batchRequests: 1,
      queuedPredictedMs: 0,
    };
    state.applyStatus(status, 0);
  });
  return state;
}

const RANKER_3: ModelWanted = { family: 'ranker', version: '3', variant: 'baseline', isPinned: false };
const leaf = (accelerator: string, fallback: string[] = []) => ({
  target: { accelerator, kernel: 'dense', memory: 'host', fallback },
  models: [RANKER_3],
});
const missing = (state: FleetState, nowMs = 0, ...leaves: ReturnType<typeof leaf>[]): string[] =>
  missingModels(state, (accelerator) => [accelerator], leaves, nowMs);

describe('versions that nobody has', () => {
  it('are told once, with the classes that were looked through', () => {
    const state = fleet({ pool: 'cpu', versions: ['2'] });
    expect(missing(state, 0, leaf('gpu', ['cpu']), leaf('gpu', ['cpu']), leaf('cpu'))).toEqual([
      'no live worker of gpu, cpu can run ranker@3',
      'no live worker of cpu can run ranker@3',
    ]);
  });

  it('are none where one worker of one class has it', () => {
    const state = fleet({ pool: 'cpu', versions: ['2'] }, { pool: 'gpu', versions: ['3'] });
    expect(missing(state, 0, leaf('gpu', ['cpu']))).toEqual([]);
  });

  it('are not told of a leaf that has no live worker at all', () => {
    const state = fleet({ pool: 'cpu', versions: ['2'] });
    expect(missing(state, 0, leaf('gpu'))).toEqual([]);
    expect(missing(state, 5_000, leaf('cpu'))).toEqual([]);
  });
});
