import type { HeadScores, ItemScores } from '../../ports/accelerator.ts';

/** Heads of the candidates that the version itself scored, and their places in the request; no places where that is all of them. */
export interface LastStage {
  heads: readonly HeadScores[];
  count: number;
  places?: Uint32Array;
}

/** What a version's distributions of scores are of: in a cascade the candidates of its last stage, for the others were scored by other models. */
export function lastStageOf({ heads, scores, stages }: ItemScores): LastStage {
  if (stages === undefined) return { heads, count: scores.length };
  const last = stages.reduce((highest, stage) => Math.max(highest, stage), 0);
  const places = Uint32Array.from([...stages.keys()].filter((place) => stages[place] === last));
  const chosen = (values: Float32Array): Float32Array =>
    Float32Array.from(places, (place) => values[place] ?? 0);
  return {
    heads: heads.map(({ name, values }) => ({ name, values: chosen(values) })),
    count: places.length,
    places,
  };
}

/** How many of them are among the first `candidates` of the request: places ascend. */
export function countWithin({ count, places }: LastStage, candidates: number): number {
  if (places === undefined) return Math.min(count, candidates);
  const beyond = places.findIndex((place) => place >= candidates);
  return beyond < 0 ? count : beyond;
}
