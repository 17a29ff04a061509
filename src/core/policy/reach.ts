import type { Branch, When } from './document.ts';
import { toFormula } from './formula.ts';
import { type Box, boxesOf, EVERYTHING, product, subtractBox } from './region.ts';

export interface UnreachableBranch {
  readonly branch: Branch;
  /** Ids of earlier branches that take every request; empty where the branch's own conditions contradict each other. */
  readonly takenBy: readonly string[];
}

export interface Reachability {
  readonly unreachable: readonly UnreachableBranch[];
  /** False where the policy was too large to look at all of it: then there may be more. */
  readonly complete: boolean;
}

/** A condition of more boxes counts as reachable, and as taking nothing from the branches after it. */
const BOXES_MAX = 256;
/** Subtractions in all: bounds the work on the largest policy that parses. */
const WORK_MAX = 500_000;

/**
 * Branches that no request can reach. A condition becomes a union of boxes (ranges of signals, sets of texts), from which
 * those of the branches before are subtracted: that is exact for comparisons with constants, since any signal may be
 * missing. Arithmetic and comparisons of signals with each other count as one more dimension each. A branch that can be reached
 * is never called unreachable.
 */
export function findUnreachable(tree: readonly Branch[], tuned: ReadonlyMap<string, number>): Reachability {
  const search = new ReachSearch(tuned);
  search.visit(tree, [EVERYTHING], []);
  return { unreachable: search.unreachable, complete: search.complete };
}

interface Taken {
  readonly id: string;
  readonly box: Box;
}

class ReachSearch {
  readonly unreachable: UnreachableBranch[] = [];
  complete = true;
  readonly #tuned: ReadonlyMap<string, number>;
  #work = WORK_MAX;

  constructor(tuned: ReadonlyMap<string, number>) {
    this.#tuned = tuned;
  }

  /**
   * @param path requests that the branches above let through; may hold more than get here
   * @param earlier what the branches before take for certain, outer lists included
   */
  visit(tree: readonly Branch[], path: readonly Box[], earlier: readonly Taken[]): void {
    const taken = [...earlier];
    for (const branch of tree) {
      const boxes = this.#boxesOf(branch.when);
      const inside = boxes === undefined ? undefined : product(path, boxes, BOXES_MAX);
      if (inside === undefined) this.complete = false;
      const takers = new Set<string>();
      if (inside?.every((box) => this.#isTaken(box, taken, takers))) {
        this.unreachable.push({ branch, takenBy: [...takers] });
      } else if (branch.kind === 'tree') {
        this.visit(branch.tree, inside ?? path, taken);
      }
      for (const box of boxes ?? []) taken.push({ id: branch.id, box });
    }
  }

  #boxesOf(when: When | undefined): readonly Box[] | undefined {
    return when === undefined ? [EVERYTHING] : boxesOf(toFormula(when.condition, this.#tuned), BOXES_MAX);
  }

  /** Whether nothing is left of a box; notes who took some of it. */
  #isTaken(box: Box, earlier: readonly Taken[], takers: Set<string>): boolean {
    let rest: readonly Box[] = [box];
    for (const taken of earlier) {
      this.#work -= rest.length;
      const next = rest.flatMap((each) => subtractBox(each, taken.box));
      if (next.length > BOXES_MAX || this.#work < 0) {
        this.complete = false;
        return false;
      }
      if (next.length === rest.length && next.every((each, index) => each === rest[index])) continue;
      takers.add(taken.id);
      if (next.length === 0) return true;
      rest = next;
    }
    return false;
  }
}
