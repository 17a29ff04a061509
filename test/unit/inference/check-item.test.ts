import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import type { Tensor } from '../../../src/core/request/tensor.ts';
import { checkItem } from '../../../src/inference/check-item.ts';
import { inputLayout } from '../../../src/inference/input-layout.ts';
import { configSchema } from '../../../src/inference/repository/config.ts';
import { modelVersion } from '../../../src/inference/repository/model-version.ts';
import type { ScoreItem } from '../../../src/ports/accelerator.ts';
import { floatTensor, longTensor, toyConfig, toyItem, toyRequest } from './toy-model.ts';

const layout = inputLayout(modelVersion(v.parse(configSchema, toyConfig()), { terms: [] }, 0));
const good = toyItem(toyRequest(3, 4, 2));

/** The good item with some request tensors or candidate tensors replaced (or added) by name; `undefined` leaves one out. */
function withTensors(
  request: Record<string, Tensor | undefined>,
  candidate: Record<string, Tensor | undefined> = {},
): ScoreItem {
  const replace = (tensors: readonly Tensor[], changes: Record<string, Tensor | undefined>): Tensor[] => {
    const kept = tensors.filter(({ name }) => !Object.hasOwn(changes, name));
    return [...kept, ...Object.values(changes).filter((tensor) => tensor !== undefined)];
  };
  return {
    ...good,
    requestTensors: replace(good.requestTensors, request),
    candidateTensors: replace(good.candidateTensors, candidate),
  };
}

describe('checkItem', () => {
  test('finds the rows of each input', () => {
    const checked = checkItem(layout, { ...good, scoreLimit: 3 });
    expect(checked.request.map((contents) => contents.length)).toEqual([12, 8, 16]);
    expect(checked.requestRows).toEqual([1, 1, 2]);
    expect(checked.lengths).toEqual([2]);
    expect(checked.candidate).toEqual([expect.objectContaining({ length: 36 })]);
    expect(checked.count).toBe(3);
  });

  test.each<[string, ScoreItem]>([
    ['a leading axis of 1', withTensors({ user: floatTensor('user', [1, 3], [1, 2, 3]) })],
    [
      'a leading axis of 1 of a sequence',
      withTensors({ history: floatTensor('history', [1, 2, 2], [1, 2, 3, 4]) }),
    ],
    ['a leading axis of 1 of a scalar', withTensors({ segment: longTensor('segment', [1], [1]) })],
    ['no rows of a sequence', withTensors({ history: floatTensor('history', [0, 2], []) })],
    ['no sequence where it is optional', withTensors({ history: undefined })],
    ['a length that counts all rows', withTensors({ history_length: longTensor('history_length', [], [2]) })],
  ])('accepts %s', (_, item) => {
    expect(checkItem(layout, item).count).toBe(4);
  });

  test('takes a shorter length from the request: its last rows are padding', () => {
    const item = withTensors({ history_length: longTensor('history_length', [1], [1]) });
    expect(checkItem(layout, item).lengths).toEqual([1]);
  });

  test.each<[string, ScoreItem, string, RegExp]>([
    ['a missing input', withTensors({ user: undefined }), 'INVALID_TENSOR', /missing.*user/],
    ['a missing candidate input', withTensors({}, { item: undefined }), 'INVALID_TENSOR', /missing.*item/],
    [
      'an unknown input',
      withTensors({ age: floatTensor('age', [1], [1]) }),
      'INVALID_TENSOR',
      /"age".*user, segment/,
    ],
    [
      'an input on the other side',
      withTensors({ item: floatTensor('item', [3], [1, 2, 3]) }),
      'INVALID_TENSOR',
      /no such input/,
    ],
    [
      'a made input',
      withTensors({ request_index: longTensor('request_index', [1], [0]) }),
      'INVALID_TENSOR',
      /no such input/,
    ],
    [
      'another datatype',
      withTensors({ segment: floatTensor('segment', [], [1]) }),
      'INVALID_TENSOR',
      /segment.*FP32.*INT64/,
    ],
    [
      'another width',
      withTensors({ user: floatTensor('user', [4], [1, 2, 3, 4]) }),
      'INVALID_TENSOR',
      /user.*FP32 \[4\].*FP32 \[3\]/,
    ],
    ['another rank', withTensors({ user: floatTensor('user', [3, 1], [1, 2, 3]) }), 'INVALID_TENSOR', /user/],
    [
      'two requests in one',
      withTensors({ user: floatTensor('user', [2, 3], [1, 2, 3, 4, 5, 6]) }),
      'INVALID_TENSOR',
      /user/,
    ],
    ['too few bytes', withTensors({ user: floatTensor('user', [3], [1, 2]) }), 'INVALID_TENSOR', /8 bytes/],
    [
      'too many bytes',
      withTensors({}, { item: floatTensor('item', [4, 3], Array(13).fill(1)) }),
      'INVALID_TENSOR',
      /52 bytes/,
    ],
    [
      'a negative size',
      withTensors({ history: floatTensor('history', [-1, 2], []) }),
      'INVALID_TENSOR',
      /history/,
    ],
    [
      'a size that is no integer',
      withTensors({ history: floatTensor('history', [0.5, 2], [1]) }),
      'INVALID_TENSOR',
      /history/,
    ],
    ['fewer candidates than to score', { ...good, scoreLimit: 5 }, 'INVALID_TENSOR', /item.*at least 5/],
    [
      'NaN',
      withTensors({ user: floatTensor('user', [3], [1, Number.NaN, 3]) }),
      'NON_FINITE',
      /user: element 1/,
    ],
    [
      'infinity',
      withTensors(
        {},
        { item: floatTensor('item', [4, 3], [...Array(10).fill(0), Number.NEGATIVE_INFINITY, 0]) },
      ),
      'NON_FINITE',
      /item: element 10/,
    ],
    [
      'a length past the rows',
      withTensors({ history_length: longTensor('history_length', [], [3]) }),
      'INVALID_TENSOR',
      /0 to 2/,
    ],
    [
      'a negative length',
      withTensors({ history_length: longTensor('history_length', [], [-1]) }),
      'INVALID_TENSOR',
      /0 to 2/,
    ],
    [
      'a length of another type',
      withTensors({ history_length: floatTensor('history_length', [], [1]) }),
      'INVALID_TENSOR',
      /no length/,
    ],
    [
      'a long sequence',
      withTensors({ history: floatTensor('history', [9, 2], Array(18).fill(1)) }),
      'LIMIT_EXCEEDED',
      /at most 8/,
    ],
    ['many candidates', { ...good, scoreLimit: 65 }, 'LIMIT_EXCEEDED', /at most 64/],
    [
      'many bytes',
      withTensors({}, { item: floatTensor('item', [400, 3], Array(1200).fill(1)) }),
      'LIMIT_EXCEEDED',
      /at most 4096/,
    ],
    ['a limit that is no count', { ...good, scoreLimit: 1.5 }, 'INVALID_REQUEST', /scoreLimit/],
    ['a negative limit', { ...good, scoreLimit: -1 }, 'INVALID_REQUEST', /scoreLimit/],
  ])('refuses %s', (_, item, code, message) => {
    expect(() => checkItem(layout, item)).toThrowError(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  test('refuses a tensor that is sent twice', () => {
    const [user] = good.requestTensors;
    const item = { ...good, requestTensors: [...good.requestTensors, ...(user === undefined ? [] : [user])] };
    expect(() => checkItem(layout, item)).toThrowError(/twice.*"user"/);
  });

  test('does not read candidates past the limit', () => {
    const values = [1, 2, 3, Number.NaN, 5, 6, 7, 8, 9, 10, 11, 12];
    const item = withTensors({}, { item: floatTensor('item', [4, 3], values) });
    expect(checkItem(layout, { ...item, scoreLimit: 1 }).count).toBe(1);
  });
});
