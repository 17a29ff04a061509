import { expect, it } from 'vitest';
import { rankedCandidates } from '../../../src/client/ranking.ts';

const bytes = (...values: number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);

it.each([
  { name: 'by score', scores: [1, 3, 2], stages: null, want: [1, 2, 0] },
  { name: 'of equal ones the first sent', scores: [1, 2, 2, 2], stages: null, want: [1, 2, 3, 0] },
  {
    name: 'a later stage before an earlier one',
    scores: [9, 1, 2, 8],
    stages: [0, 1, 1, 0],
    want: [2, 1, 0, 3],
  },
  { name: 'none', scores: [], stages: null, want: [] },
])('ranks candidates: $name', ({ scores, stages, want }) => {
  const scoredStage = stages === null ? null : Buffer.from(stages);
  expect(rankedCandidates({ scores: bytes(...scores), scoredStage })).toEqual(want);
});
