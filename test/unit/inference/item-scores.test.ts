import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { failed, itemResult } from '../../../src/inference/item-scores.ts';
import { configSchema } from '../../../src/inference/repository/config.ts';
import { modelVersion } from '../../../src/inference/repository/model-version.ts';
import { toyConfig } from './toy-model.ts';

function versionWith(rankBy: string) {
  return modelVersion(v.parse(configSchema, { ...toyConfig(), rankBy }), { terms: [] }, 0);
}

describe('itemResult', () => {
  test('names the heads and ranks by them', () => {
    const heads = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
    expect(itemResult(versionWith('click - match'), heads, {}, 2)).toEqual({
      status: 'scored',
      scores: {
        heads: [
          { name: 'click', values: Float32Array.of(1, 2) },
          { name: 'match', values: Float32Array.of(3, 4) },
        ],
        scores: Float32Array.of(-2, -2),
      },
    });
  });

  test.each([
    ['a head', 'click', [Float32Array.of(1, Number.NaN), Float32Array.of(1, 1)], /head click .* candidate 1/],
    [
      'a division by 0',
      'click / match',
      [Float32Array.of(1, 1), Float32Array.of(0, 1)],
      /rankBy .* candidate 0/,
    ],
    [
      'a score that passes FP32',
      'click * 1e39',
      [Float32Array.of(1), Float32Array.of(1)],
      /rankBy .* candidate 0/,
    ],
  ])('fails for %s that is no finite number', (_, rankBy, heads, message) => {
    expect(itemResult(versionWith(rankBy), heads, {}, heads[0]?.length ?? 0)).toMatchObject({
      status: 'failed',
      error: { code: 'NON_FINITE', message: expect.stringMatching(message) },
    });
  });
});

test('a fault of the program is not an item’s failure', () => {
  const fault = new TypeError('a bug');
  expect(() => failed(fault)).toThrowError(fault);
});
