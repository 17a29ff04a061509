import type { WorkerWindow } from '../../contracts/records.ts';
import type { HeadScores, ScoreGroup, ScoresByHead } from '../../core/rollout/score-observation.ts';
import { KEY_GROUPS } from '../../core/scores/key-group.ts';
import { ScoreHistogram } from '../../core/scores/score-histogram.ts';

type Edges = Readonly<Record<string, readonly number[]>>;

interface GroupScores {
  sum: number;
  sumOfSquares: number;
  histogram: ScoreHistogram;
}

interface HeadCounts {
  readonly stable: readonly GroupScores[];
  readonly candidate: readonly GroupScores[];
}

/** Deciles of the control are known well enough from so many scores: a bin then holds 8 to 12 % of them. */
const FREEZE_SCORES_MIN = 500;
/** A head that the control never had is told by a single edge. */
const CANDIDATE_ALONE_MIN = 100;
const PARTS = 10;
/** Digits of sums in the log. */
const DIGITS = 9;

/**
 * The sampled scores of both arms, by head, counted between edges that are frozen before they count: deciles of the control's first scores in the
 * stage. Whatever arm is not the stable one is the candidate's.
 */
export class ScoreWindows {
  #edges = new Map<string, readonly number[]>();
  #freezing = new Map<string, ScoreHistogram>();
  #heads = new Map<string, HeadCounts>();

  /** @param edges that are frozen already, for whoever takes over in the middle of a stage */
  begin(edges: Edges): void {
    this.#edges = new Map(Object.entries(edges));
    this.#freezing = new Map();
    this.#heads = new Map();
  }

  take({ model, arm, heads }: Pick<WorkerWindow, 'model' | 'arm' | 'heads'>): void {
    for (const { name, samples } of heads) {
      if (samples.length === 0) continue;
      const counts = this.#countsOf(`${model}/${name}`);
      const groups = arm === 'STABLE' ? counts.stable : counts.candidate;
      for (const { group, sum, sumOfSquares, histogram } of samples) {
        const read = ScoreHistogram.fromBytes(histogram);
        const into = groups[group];
        if (read === undefined || into === undefined || !Number.isFinite(sum + sumOfSquares)) continue;
        into.sum += sum;
        into.sumOfSquares += sumOfSquares;
        into.histogram.merge(read);
      }
    }
  }

  /** What came since the last call, of the heads whose edges are frozen; then those of others are, where enough is known by now. */
  observe(): ScoresByHead {
    const observed: Record<string, HeadScores> = {};
    for (const [head, { stable, candidate }] of this.#heads) {
      const edges = this.#edges.get(head);
      if (edges === undefined) this.#freeze(head, stable, candidate);
      else
        observed[head] = {
          edges,
          stable: stable.map((group) => countBetween(group, edges)),
          candidate: candidate.map((group) => countBetween(group, edges)),
        };
    }
    this.#heads = new Map();
    return observed;
  }

  #freeze(head: string, stable: readonly GroupScores[], candidate: readonly GroupScores[]): void {
    const known = this.#freezing.get(head) ?? new ScoreHistogram();
    const alone = merged(candidate);
    for (const { histogram } of stable) known.merge(histogram);
    this.#freezing.set(head, known);
    if (known.count >= FREEZE_SCORES_MIN) this.#edges.set(head, edgesOf(known));
    else if (known.count === 0 && alone.count >= CANDIDATE_ALONE_MIN) this.#edges.set(head, edgesOf(alone));
  }

  #countsOf(head: string): HeadCounts {
    let counts = this.#heads.get(head);
    if (counts === undefined) {
      counts = { stable: newGroups(), candidate: newGroups() };
      this.#heads.set(head, counts);
    }
    return counts;
  }
}

function newGroups(): GroupScores[] {
  return Array.from({ length: KEY_GROUPS }, () => ({
    sum: 0,
    sumOfSquares: 0,
    histogram: new ScoreHistogram(),
  }));
}

function merged(groups: readonly GroupScores[]): ScoreHistogram {
  const all = new ScoreHistogram();
  for (const { histogram } of groups) all.merge(histogram);
  return all;
}

/** Tenths of the scores; a score bin that has a tenth or more by itself is a bin of its own, so that what lies beyond a constant score is told from it. */
function edgesOf(histogram: ScoreHistogram): number[] {
  const part = histogram.count / PARTS;
  const edges = new Set<number>();
  let before = 0;
  for (const [bin, count] of histogram.entries()) {
    const passes = Math.floor((before + count) / part) > Math.floor(before / part);
    if (passes && before > 0) edges.add(bin);
    if (count >= part) edges.add(bin).add(bin + 1);
    before += count;
  }
  return [...edges].sort((a, b) => a - b);
}

function countBetween({ sum, sumOfSquares, histogram }: GroupScores, edges: readonly number[]): ScoreGroup {
  const bins = new Array<number>(edges.length + 1).fill(0);
  let place = 0;
  for (const [bin, count] of histogram.entries()) {
    while (place < edges.length && bin >= (edges[place] ?? 0)) place += 1;
    bins[place] = (bins[place] ?? 0) + count;
  }
  return { sum: shorten(sum), sumOfSquares: shorten(sumOfSquares), bins };
}

function shorten(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
