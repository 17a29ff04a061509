import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../../src/core/errors.ts';
import { checkRequest } from '../../../../src/core/request/check.ts';
import type { RequestFields } from '../../../../src/core/request/fields.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { FAMILIES, HISTORY, IDS, ITEM, numbers, request, tensor, texts, USER } from './requests.ts';

const LIMITS = { ...DEFAULT_REQUEST_LIMITS, contextKeys: new Set(['surface']), resultPartitions: 12 };

const check = (changes: Partial<RequestFields>, families = FAMILIES) =>
  checkRequest(request(changes), families, LIMITS);

const entries = <T>(count: number, value: T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, value]));

describe('checkRequest rejects', () => {
  it.each<[string, Partial<RequestFields>, ErrorCode, string[]]>([
    ['an empty id', { requestId: '' }, 'INVALID_REQUEST', ['requestId', '1 to 128 bytes']],
    ['a long id', { requestId: `${'é'.repeat(64)}x` }, 'LIMIT_EXCEEDED', ['requestId', 'at most 128 bytes']],
    [
      'an unknown model',
      { model: 'rankr' },
      'UNKNOWN_MODEL',
      ['"rankr"', 'ranker, retriever', 'Did you mean "ranker"?'],
    ],
    [
      'a model far from any',
      { model: 'zzz' },
      'UNKNOWN_MODEL',
      ['"zzz"', 'ranker, retriever', 'Families are those of the model folder'],
    ],
    ['an unknown version', { model: 'ranker@3' }, 'UNKNOWN_MODEL', ['"3"', '1, 2', 'Ask for "ranker"']],
    ['an empty version', { model: 'ranker@' }, 'UNKNOWN_MODEL', ['""', '1, 2']],
    ['a deadline of 0', { deadlineMs: 0 }, 'INVALID_REQUEST', ['deadlineMs', 'got 0', 'duration']],
    ['a negative deadline', { deadlineMs: -5 }, 'INVALID_REQUEST', ['deadlineMs', 'got -5']],
    ['a deadline that is no number', { deadlineMs: Number.NaN }, 'INVALID_REQUEST', ['deadlineMs', 'NaN']],
    [
      'a time of day as deadline',
      { deadlineMs: 1_700_000_000 },
      'LIMIT_EXCEEDED',
      ['deadlineMs', '600000 ms'],
    ],
    ['priority 10', { priority: 10 }, 'INVALID_REQUEST', ['priority', 'got 10', '9 (lowest)']],
    ['priority -1', { priority: -1 }, 'INVALID_REQUEST', ['priority', 'got -1']],
    ['priority 0.5', { priority: 0.5 }, 'INVALID_REQUEST', ['priority', 'got 0.5']],
    ['a NaN value', { value: Number.NaN }, 'NON_FINITE', ['value', 'got NaN']],
    ['an infinite value', { value: Number.NEGATIVE_INFINITY }, 'NON_FINITE', ['value', 'got -Infinity']],
    [
      'a long bucketKey',
      { bucketKey: 'x'.repeat(257) },
      'LIMIT_EXCEEDED',
      ['bucketKey', 'at most 256 bytes'],
    ],
    ['a long region', { region: '€'.repeat(86) }, 'LIMIT_EXCEEDED', ['region']],
    ['a pin, which nobody may give yet', { pin: 'enhanced' }, 'INVALID_REQUEST', ['pin', 'enhanced']],
    ['a long pin', { pin: 'x'.repeat(257) }, 'LIMIT_EXCEEDED', ['pin']],
    [
      'a result partition past the last',
      { resultPartition: 12 },
      'INVALID_REQUEST',
      ['resultPartition', 'got 12', '0 to 11'],
    ],
    [
      'a negative result partition',
      { resultPartition: -1 },
      'INVALID_REQUEST',
      ['resultPartition', 'got -1'],
    ],
    [
      'many opt-outs',
      { optOut: Array.from({ length: 9 }, () => 'RMA') },
      'LIMIT_EXCEEDED',
      ['optOut', 'got 9', 'at most 8'],
    ],
    ['many hints', { hints: entries(65, 1) }, 'LIMIT_EXCEEDED', ['hints', 'got 65', 'at most 64']],
    ['a NaN hint', { hints: { age: 3, price: Number.NaN } }, 'NON_FINITE', ['"price"', 'got NaN']],
    ['a long name of a hint', { hints: { ['x'.repeat(257)]: 1 } }, 'LIMIT_EXCEEDED', ['the name of a hint']],
    ['much context', { context: entries(33, '') }, 'LIMIT_EXCEEDED', ['context', 'got 33', 'at most 32']],
    [
      'a long context text',
      { context: { surface: 'x'.repeat(257) } },
      'LIMIT_EXCEEDED',
      ['a text of context'],
    ],
    ['a long context key', { context: { ['x'.repeat(257)]: '' } }, 'LIMIT_EXCEEDED', ['a key of context']],
    ['many experiments', { experiments: entries(33, '') }, 'LIMIT_EXCEEDED', ['experiments', 'got 33']],
    [
      'a baseline above N',
      { baselineCandidates: 4 },
      'INVALID_REQUEST',
      ['baselineCandidates', 'got 4', '0 to 3'],
    ],
    ['a negative baseline', { baselineCandidates: -1 }, 'INVALID_REQUEST', ['baselineCandidates', 'got -1']],
    ['a broken baseline', { baselineCandidates: 1.5 }, 'INVALID_REQUEST', ['baselineCandidates', 'got 1.5']],
    [
      'a baseline without candidates',
      { candidateIds: null, candidateTensors: [] },
      'INVALID_REQUEST',
      ['got 2', '0 to 0'],
    ],
    [
      'too few candidate values',
      { candidateValues: Buffer.alloc(8) },
      'INVALID_TENSOR',
      ['candidateValues', 'got 8 bytes', '12 bytes'],
    ],
    [
      'an infinite candidate value',
      { candidateValues: numbers('', 'FP32', [3], [1, 2, Number.POSITIVE_INFINITY]).contents },
      'NON_FINITE',
      ['candidateValues', 'element 2'],
    ],
    [
      'ids of numbers',
      { candidateIds: numbers('ids', 'FP32', [3], [1, 2, 3]) },
      'INVALID_TENSOR',
      ['candidateIds', '"FP32"', 'INT64, BYTES'],
    ],
    [
      'too few ids',
      { candidateIds: numbers('ids', 'INT64', [2], [1, 2]) },
      'INVALID_TENSOR',
      ['candidateIds', '[2]', '[3]'],
    ],
    [
      'ids of two dimensions',
      { candidateIds: numbers('ids', 'INT64', [3, 1], [1, 2, 3]) },
      'INVALID_TENSOR',
      ['candidateIds', '[3,1]'],
    ],
    [
      'ids that end early',
      { candidateIds: { ...IDS, contents: IDS.contents.subarray(1) } },
      'INVALID_TENSOR',
      ['candidateIds', '23 bytes', '24 bytes'],
    ],
    [
      'too many candidates',
      { candidateIds: null, candidateTensors: [numbers('item', 'FP32', [9, 2], Array(18).fill(0))] },
      'LIMIT_EXCEEDED',
      ['got 9', 'at most 8', 'split'],
    ],
    [
      'many bytes',
      { candidateIds: texts('ids', [3], ['x'.repeat(4000), '', '']) },
      'LIMIT_EXCEEDED',
      ['4116 bytes', 'at most 4096 bytes'],
    ],
    [
      'an unknown request tensor',
      { requestTensors: [USER, numbers('age', 'FP32', [1], [3])] },
      'INVALID_TENSOR',
      ['requestTensors', '"age"', 'user, history, history_length'],
    ],
    [
      'an unknown candidate tensor',
      { candidateTensors: [ITEM, numbers('price', 'FP32', [3], [1, 2, 3])] },
      'INVALID_TENSOR',
      ['candidateTensors', '"price"', 'item, tags'],
    ],
    [
      'a tensor of the other side',
      { requestTensors: [USER, ITEM] },
      'INVALID_TENSOR',
      ['"item"', 'Send it in candidateTensors'],
    ],
    [
      'a candidate index',
      { candidateTensors: [ITEM, numbers('request_index', 'INT64', [3], [0, 0, 0])] },
      'INVALID_TENSOR',
      ['"request_index"', 'millrace computes it'],
    ],
    [
      'a tensor twice',
      { requestTensors: [USER, USER] },
      'INVALID_TENSOR',
      ['two tensors of one name', '"user"'],
    ],
    [
      'a missing request tensor',
      { requestTensors: [HISTORY] },
      'INVALID_TENSOR',
      ['request tensor "user" is missing', 'FP32 [4]', 'requestTensors'],
    ],
    [
      'a missing candidate tensor',
      { candidateTensors: [] },
      'INVALID_TENSOR',
      ['candidate tensor "item" is missing', 'candidateTensors'],
    ],
    [
      'another datatype',
      { requestTensors: [numbers('user', 'FP64', [4], [1, 2, 3, 4])] },
      'INVALID_TENSOR',
      ['"user"', '"FP64"', 'FP32'],
    ],
    [
      'a datatype that is none',
      { requestTensors: [tensor('user', 'FP8', [4], Buffer.alloc(4))] },
      'INVALID_TENSOR',
      ['"FP8"', 'FP32'],
    ],
    [
      'another width',
      { requestTensors: [numbers('user', 'FP32', [5], [1, 2, 3, 4, 5])] },
      'INVALID_TENSOR',
      ['"user"', '[5]', '[4]'],
    ],
    ['another rank', { requestTensors: [{ ...USER, shape: [2, 2] }] }, 'INVALID_TENSOR', ['"user"', '[2,2]']],
    [
      'a batch axis of 2',
      { requestTensors: [numbers('user', 'FP32', [2, 4], [1, 2, 3, 4, 5, 6, 7, 8])] },
      'INVALID_TENSOR',
      ['"user"', '[2,4]'],
    ],
    [
      'a batch axis on the candidate side',
      { candidateTensors: [{ ...ITEM, shape: [1, 3, 2] }], candidateIds: null, baselineCandidates: 1 },
      'INVALID_TENSOR',
      ['"item"', '[1,3,2]'],
    ],
    [
      'contents too short',
      { requestTensors: [{ ...USER, contents: USER.contents.subarray(1) }] },
      'INVALID_TENSOR',
      ['"user"', '15 bytes', '16 bytes'],
    ],
    [
      'contents too long',
      { requestTensors: [tensor('user', 'FP32', [4], Buffer.alloc(20))] },
      'INVALID_TENSOR',
      ['20 bytes', '16 bytes'],
    ],
    [
      'a negative dimension',
      { requestTensors: [{ ...USER, shape: [-4] }] },
      'INVALID_TENSOR',
      ['"user"', '[-4]', 'whole numbers'],
    ],
    [
      'a shape that overflows',
      { requestTensors: [{ ...USER, shape: [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1] }] },
      'INVALID_TENSOR',
      ['overflows'],
    ],
    [
      'many dimensions',
      { requestTensors: [{ ...USER, shape: [1, 1, 1, 1, 1, 1, 1, 1, 4] }] },
      'INVALID_TENSOR',
      ['too many dimensions', 'got 9', 'at most 8'],
    ],
    [
      'a sequence too long',
      { requestTensors: [USER, numbers('history', 'FP32', [7, 8], Array(56).fill(0))] },
      'LIMIT_EXCEEDED',
      ['"history"', '[7,8]', 'at most 6'],
    ],
    [
      'NaN on the request side',
      { requestTensors: [numbers('user', 'FP32', [4], [0, 0, Number.NaN, 0])] },
      'NON_FINITE',
      ['"user"', 'element 2'],
    ],
    [
      'candidates that differ in number',
      { candidateTensors: [ITEM, texts('tags', [2], ['a', 'b'])] },
      'INVALID_TENSOR',
      ['"tags"', '[2]', 'dimension of 3'],
    ],
    [
      'a BYTES element cut off',
      { candidateTensors: [ITEM, tensor('tags', 'BYTES', [3], Buffer.alloc(11))] },
      'INVALID_TENSOR',
      ['"tags"', 'element 2 of 3'],
    ],
    [
      'a BYTES length beyond the end',
      {
        candidateTensors: [
          ITEM,
          tensor('tags', 'BYTES', [3], Buffer.from('ffffffff0000000000000000', 'hex')),
        ],
      },
      'INVALID_TENSOR',
      ['element 0 of 3'],
    ],
    [
      'a BYTES element one byte short',
      { candidateTensors: [ITEM, tensor('tags', 'BYTES', [1], Buffer.from('020000006a', 'hex'))] },
      'INVALID_TENSOR',
      ['element 0 of 1'],
    ],
    [
      'bytes after the last BYTES element',
      { candidateTensors: [ITEM, tensor('tags', 'BYTES', [3], Buffer.alloc(13))] },
      'INVALID_TENSOR',
      ['"tags"', '1 bytes after 3'],
    ],
    [
      'a first dimension that is no count',
      { candidateTensors: [{ ...ITEM, shape: [-3, 2] }] },
      'INVALID_TENSOR',
      ['got -3'],
    ],
    [
      'a length beyond its rows',
      { requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [], [3])] },
      'INVALID_TENSOR',
      ['"history_length"', 'got 3', '0 to 2'],
    ],
    [
      'a negative length',
      { requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [], [-1])] },
      'INVALID_TENSOR',
      ['got -1'],
    ],
    [
      'a length without its sequence',
      { requestTensors: [USER, numbers('history_length', 'INT64', [], [1])] },
      'INVALID_TENSOR',
      ['got 1', '0 to 0'],
    ],
  ])('%s', (_, changes, code, parts) => {
    const checked = check(changes);
    expect(checked).toMatchObject({ status: 'rejected', code, retryable: false });
    for (const part of parts) expect(checked).toHaveProperty('message', expect.stringContaining(part));
  });

  it('everything where no model is loaded', () => {
    expect(check({}, new Map())).toMatchObject({
      code: 'UNKNOWN_MODEL',
      message: expect.stringContaining('none is loaded'),
    });
  });

  it('what the limits forbid though the family allows it', () => {
    const limits = { ...LIMITS, tensorBytesMax: 127 };
    expect(checkRequest(request(), FAMILIES, limits)).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect(checkRequest(request(), FAMILIES, { ...limits, tensorBytesMax: 128 })).toMatchObject({
      status: 'accepted',
    });
  });

  it('with messages of one line that hold no payload', () => {
    const long = check({ requestId: `${'a'.repeat(5000)}\n` });
    expect(long.status === 'rejected' && long.message.length).toBeLessThan(300);
    expect(long).not.toHaveProperty('message', expect.stringContaining('\n'));
  });
});
