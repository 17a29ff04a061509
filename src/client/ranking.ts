import type { ScoredResult } from '../contracts/records.ts';
import { readFp32 } from './tensors.ts';

/**
 * Places of a result's candidates, the best first: by score, and after a cascade those of a later stage before those of an earlier one, whose scores
 * do not compare. Of equal ones the one that was sent first.
 */
export function rankedCandidates({
  scores,
  scoredStage,
}: Pick<ScoredResult, 'scores' | 'scoredStage'>): number[] {
  const values = readFp32(scores);
  const stageOf = (place: number): number => scoredStage?.[place] ?? 0;
  return [...values.keys()].sort(
    (a, b) => stageOf(b) - stageOf(a) || (values[b] ?? 0) - (values[a] ?? 0) || a - b,
  );
}
