import { own } from '../own.ts';

/** One score of each request of one arm, of one group of keys (`keyGroupOf`). */
export interface ScoreGroup {
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Counts between the edges: one more than there are edges. */
  readonly bins: readonly number[];
}

/** One head's scores in both arms. */
export interface HeadScores {
  /** Numbers of score bins (`scoreBin`), rising; a bin holds what is from its edge on and below the next. Deciles of the control. */
  readonly edges: readonly number[];
  /** By group of keys. */
  readonly stable: readonly ScoreGroup[];
  readonly candidate: readonly ScoreGroup[];
}

/** By `<family>/<head>`. */
export type ScoresByHead = Readonly<Record<string, HeadScores>>;

/** What was seen of each head so far, and the window's on top. A head whose edges changed begins anew: its counts mean something else now. */
export function addScores(totals: ScoresByHead, window: ScoresByHead): ScoresByHead {
  const added: Record<string, HeadScores> = { ...totals };
  for (const [head, seen] of Object.entries(window)) {
    const before = own(totals, head);
    const isSame = before !== undefined && before.edges.join() === seen.edges.join();
    added[head] = isSame
      ? {
          edges: seen.edges,
          stable: addGroups(before.stable, seen.stable),
          candidate: addGroups(before.candidate, seen.candidate),
        }
      : seen;
  }
  return added;
}

function addGroups(some: readonly ScoreGroup[], others: readonly ScoreGroup[]): ScoreGroup[] {
  return some.map((group, place) => {
    const other = others[place];
    if (other === undefined) return group;
    return {
      sum: group.sum + other.sum,
      sumOfSquares: group.sumOfSquares + other.sumOfSquares,
      bins: group.bins.map((count, bin) => count + (other.bins[bin] ?? 0)),
    };
  });
}
