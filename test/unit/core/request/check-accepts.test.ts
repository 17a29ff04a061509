import { describe, expect, it } from 'vitest';
import { checkRequest } from '../../../../src/core/request/check.ts';
import type { RequestFields } from '../../../../src/core/request/fields.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { FAMILIES, HISTORY, ITEM, numbers, RANKER, request, texts, USER } from './requests.ts';

const LIMITS = { ...DEFAULT_REQUEST_LIMITS, contextKeys: new Set(['surface']), resultPartitions: 12 };

const check = (changes: Partial<RequestFields>, families = FAMILIES) =>
  checkRequest(request(changes), families, LIMITS);

describe('checkRequest accepts', () => {
  it('a good request, and says what it comes to', () => {
    const checked = check({ deadlineMs: 40, value: 2.5, bucketKey: 'user-7', model: 'ranker@2' });
    expect(checked).toEqual({
      status: 'accepted',
      requestId: 'request-1',
      family: RANKER,
      version: '2',
      candidateCount: 3,
      sequenceLength: 2,
      tensorBytes: 16 + 64 + 24 + 24,
      budgetMs: 40,
      bucketKey: 'user-7',
      value: 2.5,
      context: {},
      contextDropped: 0,
      tensors: [USER, HISTORY, undefined, ITEM, undefined, undefined],
    });
  });

  it('the SLA, the requestId and 0 for a deadline, a bucketKey and a value that are absent', () => {
    expect(check({})).toMatchObject({ budgetMs: 100, bucketKey: 'request-1', value: 0, version: undefined });
    expect(check({ bucketKey: '' })).toMatchObject({ bucketKey: 'request-1' });
  });

  it('a region, and lets policies test it as a text of that name, whatever the context says', () => {
    expect(check({ region: 'eu', context: { region: 'us', surface: 'feed' } })).toMatchObject({
      context: { region: 'eu', surface: 'feed' },
      contextDropped: 0,
    });
    expect(check({ region: null, context: { region: 'us' } })).toMatchObject({
      context: {},
      contextDropped: 1,
    });
  });

  it('context of any key, and keeps what is allow-listed', () => {
    expect(check({ context: { surface: 'feed', page: '3', __proto__x: '' } })).toMatchObject({
      context: { surface: 'feed' },
      contextDropped: 2,
    });
  });

  it.each<[string, Partial<RequestFields>, object]>([
    [
      'a leading batch axis of 1',
      {
        requestTensors: [
          { ...USER, shape: [1, 4] },
          { ...HISTORY, shape: [1, 2, 8] },
        ],
      },
      { sequenceLength: 2 },
    ],
    ['an optional sequence left out', { requestTensors: [USER] }, { sequenceLength: 0 }],
    [
      'an empty sequence',
      { requestTensors: [USER, numbers('history', 'FP32', [0, 8], [])] },
      { sequenceLength: 0 },
    ],
    [
      'a length',
      { requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [], [2])] },
      { sequenceLength: 2 },
    ],
    [
      'a length less than its rows',
      { requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [1], [1])] },
      { sequenceLength: 1 },
    ],
    [
      'a BYTES input',
      { candidateTensors: [ITEM, texts('tags', [3], ['', 'é', 'long one'])] },
      { candidateCount: 3 },
    ],
    ['BYTES ids', { candidateIds: texts('ids', [3], ['a', '', 'c']) }, { candidateCount: 3 }],
    ['no ids', { candidateIds: null }, { candidateCount: 3 }],
    [
      'a value per candidate',
      { candidateValues: numbers('values', 'FP32', [3], [1, -1, 0]).contents },
      { candidateCount: 3 },
    ],
    [
      'no candidate at all',
      { candidateIds: null, candidateTensors: [], baselineCandidates: 0 },
      { candidateCount: 0, tensorBytes: 80 },
    ],
    [
      'empty candidate tensors',
      {
        candidateIds: numbers('ids', 'INT64', [0], []),
        candidateTensors: [numbers('item', 'FP32', [0, 2], [])],
        baselineCandidates: 0,
      },
      { candidateCount: 0 },
    ],
    [
      'as many candidates as the family takes',
      { candidateIds: null, candidateTensors: [numbers('item', 'FP32', [8, 2], Array(16).fill(1))] },
      { candidateCount: 8 },
    ],
    ['a baseline of 0', { baselineCandidates: 0 }, { candidateCount: 3 }],
    ['a baseline of N', { baselineCandidates: 3 }, { candidateCount: 3 }],
    ['priorities at the ends', { priority: 9 }, {}],
    ['an id of 128 bytes', { requestId: 'é'.repeat(64) }, {}],
    ['the longest deadline', { deadlineMs: 600_000 }, { budgetMs: 600_000 }],
    ['the last result partition', { resultPartition: 11 }, {}],
    [
      'values on the candidate side that are not finite: whoever packs them checks',
      { candidateTensors: [numbers('item', 'FP32', [3, 2], [Number.NaN, 0, 0, 0, 0, 0])] },
      {},
    ],
  ])('%s', (_, changes, expected) => {
    expect(check(changes)).toMatchObject({ status: 'accepted', ...expected });
  });

  it('candidates by id alone where the candidate inputs are optional', () => {
    const inputs = RANKER.inputs.map((input) => ({ ...input, required: false }));
    const families = new Map([['ranker', { ...RANKER, inputs }]]);
    expect(check({ candidateTensors: [] }, families)).toMatchObject({
      status: 'accepted',
      candidateCount: 3,
    });
  });

  it('a family without a sequence', () => {
    const families = new Map([
      ['ranker', { ...RANKER, inputs: RANKER.inputs.filter(({ name }) => !name.startsWith('history')) }],
    ]);
    expect(check({ requestTensors: [USER] }, families)).toMatchObject({
      status: 'accepted',
      sequenceLength: undefined,
    });
  });
});
