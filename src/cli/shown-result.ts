import { styleText } from 'node:util';
import { rankedCandidates } from '../client/ranking.ts';
import { readFp32, readIds } from '../client/tensors.ts';
import type { ScoredResult } from '../contracts/records.ts';

export interface ShownCandidate {
  rank: number;
  /** Place in the request. */
  index: number;
  id: string | undefined;
  score: number;
  /** Of a cascade: the stage that scored it last, 0 the first; only scores of one stage compare. */
  stage?: number;
  /** Outputs of the model's heads, by name. */
  heads: Record<string, number>;
  /** From the synthetic catalogue. */
  syntheticTitle?: string;
}

/** A result as plain JSON: scores as numbers, ids as texts, best candidate first. */
export interface ShownResult
  extends Omit<ScoredResult, 'scores' | 'candidateIds' | 'outputs' | 'scoredStage' | 'trace'> {
  candidates: ShownCandidate[];
  /** As the router wrote it. */
  trace: unknown;
}

/** Titles by candidate id, of the catalogue that the packaged model was trained on. */
export type Titles = ReadonlyMap<string, string>;

export function shownResult(result: ScoredResult, titles: Titles = new Map()): ShownResult {
  const { scores, candidateIds, outputs, scoredStage, trace, ...rest } = result;
  const ids = candidateIds === null ? [] : readIds(candidateIds);
  const heads = outputs.map(({ name, contents }) => ({ name, values: readFp32(contents) }));
  const values = readFp32(scores);
  const candidates = rankedCandidates(result).map((index, rank): ShownCandidate => {
    const id = ids[index];
    const title = id === undefined ? undefined : titles.get(id);
    return {
      rank: rank + 1,
      index,
      id,
      score: values[index] ?? Number.NaN,
      ...(scoredStage === null ? {} : { stage: scoredStage[index] ?? 0 }),
      heads: Object.fromEntries(heads.map(({ name, values }) => [name, values[index] ?? Number.NaN])),
      ...(title === undefined ? {} : { syntheticTitle: title }),
    };
  });
  return { ...rest, candidates, trace: trace === null ? null : JSON.parse(trace) };
}

type Style = Parameters<typeof styleText>[0];

const OUTCOME_STYLES: Readonly<Record<ScoredResult['outcome'], Style>> = {
  SCORED: 'green',
  DEGRADED: 'yellow',
  EXPIRED: 'yellow',
  REJECTED: 'red',
  DEAD_LETTERED: 'red',
  UNKNOWN: 'red',
};

export function outcomeText(outcome: ScoredResult['outcome'], color: boolean, width = 0): string {
  const padded = outcome.padEnd(width);
  return color ? styleText(OUTCOME_STYLES[outcome], padded, { validateStream: false }) : padded;
}

/** `ranker@1 baseline` */
export function servedBy(result: Pick<ScoredResult, 'model' | 'modelVersion' | 'variant'>): string {
  const { model, modelVersion, variant } = result;
  return modelVersion === '' ? model : `${model}@${modelVersion} ${variant.toLowerCase()}`;
}

export function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
}
