import { expect, it } from 'vitest';
import { countWithin, lastStageOf } from '../../../../src/stages/accelerator-worker/last-stage.ts';

const scoresOf = (values: readonly number[], stages?: readonly number[]) => {
  const scores = Float32Array.from(values);
  const heads = [{ name: 'click', values: scores }];
  return stages === undefined ? { heads, scores } : { heads, scores, stages: Uint8Array.from(stages) };
};

it.each([
  { name: 'all of a version that is no cascade', scores: scoresOf([1, 2, 3]), heads: [1, 2, 3], within: 2 },
  {
    name: 'those that the last stage scored',
    scores: scoresOf([Number.NaN, 2, 3], [0, 1, 1]),
    heads: [2, 3],
    within: 1,
  },
  { name: 'of three stages, too', scores: scoresOf([1, 2, 3], [0, 2, 1]), heads: [2], within: 1 },
  { name: 'none of none', scores: scoresOf([], []), heads: [], within: 0 },
  {
    name: 'none within, where the best came behind them',
    scores: scoresOf([1, 2, 3], [0, 0, 1]),
    heads: [3],
    within: 0,
  },
])('distributions of scores are of $name', ({ scores, heads, within }) => {
  const last = lastStageOf(scores);
  expect(last.heads.map(({ name, values }) => [name, [...values]])).toEqual([['click', heads]]);
  expect(last.count).toBe(heads.length);
  expect(countWithin(last, 2)).toBe(within);
});
