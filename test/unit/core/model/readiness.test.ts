import { describe, expect, it } from 'vitest';
import {
  type NamedVersion,
  namedVersions,
  type VersionHeld,
  versionsNotReady,
  type WorkerVersions,
} from '../../../../src/core/model/readiness.ts';

const held = (status: VersionHeld['status'], fields: Partial<VersionHeld> = {}): VersionHeld => ({
  family: 'ranker',
  version: '3',
  variant: 'baseline',
  status,
  reason: '',
  ...fields,
});
const worker = (name: string, ...versions: VersionHeld[]): WorkerVersions => ({
  worker: name,
  pool: name.startsWith('g') ? 'gpu' : 'cpu',
  versions,
});
const RANKER_3: NamedVersion = { family: 'ranker', version: '3', variant: undefined };
const problems = (workers: WorkerVersions[], how: 'all' | 'some' = 'all', pools = ['cpu', 'gpu']): string[] =>
  versionsNotReady([RANKER_3], new Set(pools), workers, how);

describe('versions that a policy names', () => {
  it('are told by variant only where they are named by variant', () => {
    expect(
      namedVersions(
        new Map([
          ['ranker', { baseline: '3', enhanced: '3' }],
          ['ads', { baseline: '1', enhanced: '2' }],
          ['feed', { baseline: undefined, enhanced: '5' }],
        ]),
      ),
    ).toEqual([
      RANKER_3,
      { family: 'ads', version: '1', variant: 'baseline' },
      { family: 'ads', version: '2', variant: 'enhanced' },
      { family: 'feed', version: '5', variant: 'enhanced' },
    ]);
  });

  it('are ready where every worker of the pools says so', () => {
    expect(problems([worker('c1', held('READY')), worker('g1', held('READY'))])).toEqual([]);
    expect(problems([worker('c1', held('READY')), worker('g1', held('FAILED'))], 'all', ['cpu'])).toEqual([]);
  });

  it('are not where one does not, and it is said who said what', () => {
    const failed = held('FAILED', { reason: 'golden case 1 gives NaN' });
    expect(problems([worker('c1', failed), worker('c2', held('LOADING')), worker('g1')])).toEqual([
      'c1 (pool cpu) refuses ranker@3: golden case 1 gives NaN',
      'c2 (pool cpu) is still loading ranker@3',
      'g1 (pool gpu) has not heard of ranker@3',
    ]);
    expect(problems([])).toEqual(['no live worker of cpu, gpu has told that it can run ranker@3']);
  });

  it('of a rollout that runs bear workers that come, and no refusal', () => {
    const coming = [worker('c1', held('READY')), worker('c2', held('LOADING')), worker('c3')];
    expect(problems(coming, 'some')).toEqual([]);
    expect(problems([...coming, worker('g1', held('LOADING'))], 'some')).toEqual([
      'g1 (pool gpu) is still loading ranker@3',
    ]);
    expect(problems([...coming, worker('c4', held('FAILED', { reason: 'no' }))], 'some')).toEqual([
      'c4 (pool cpu) refuses ranker@3: no',
    ]);
  });

  it('must be of the variant that they are named for', () => {
    const named: NamedVersion = { ...RANKER_3, variant: 'enhanced' };
    const pools = new Set(['cpu']);
    expect(versionsNotReady([named], pools, [worker('c1', held('READY'))], 'some')).toEqual([
      'c1 (pool cpu) says that ranker@3 is baseline, and the policy names it for enhanced',
    ]);
    const enhanced = worker('c1', held('READY', { variant: 'enhanced' }));
    expect(versionsNotReady([named], pools, [enhanced], 'all')).toEqual([]);
  });
});
