import { MillraceError } from '../errors.ts';
import type { CompiledPolicy, Leaf } from './compile.ts';
import type { Expectation, Target, Variant } from './document.ts';
import { leafAt, type SignalVector } from './explain.ts';

/** How many requests went from one place under the first policy to another under the second. */
export interface Movement {
  readonly from: string;
  readonly to: string;
  readonly requests: number;
  /** Of all requests, 0 … 1. */
  readonly share: number;
}

/** What a leaf asks for; a variant of null leaves the choice to the router. */
export type LeafTarget = Target & { readonly variant: Variant | null };

/** Requests that get another target or variant, by the leaves that they ended and end in. */
export interface ChangedTarget {
  readonly leaf: { readonly from: string; readonly to: string };
  readonly from: LeafTarget;
  readonly to: LeafTarget;
  readonly requests: number;
  readonly share: number;
}

export interface PolicyDiff {
  readonly requests: number;
  /** Requests that get another target or variant; a renamed leaf changes nothing. */
  readonly changed: number;
  readonly changedShare: number;
  /** Leaf × leaf, the most frequent first; the unchanged ones are in it too. */
  readonly leaves: readonly Movement[];
  /** Accelerator × accelerator, likewise. */
  readonly accelerators: readonly Movement[];
  /** What moves there, and what becomes another kernel, memory or variant on the same accelerator; the most frequent first. */
  readonly changedTargets: readonly ChangedTarget[];
  /** Leaves of the second policy that changed requests end in, by the number of requests. */
  readonly changedLeaves: ReadonlyMap<string, number>;
}

/**
 * Decides every request of a corpus by both policies, and counts what moves.
 *
 * @param corpus requests whose signals are laid out as `signalNames` says, which both policies must share
 * @throws MillraceError INVALID_POLICY where they don't
 */
export function diffPolicies(
  before: CompiledPolicy,
  after: CompiledPolicy,
  corpus: Iterable<SignalVector>,
): PolicyDiff {
  if (before.signalNames.join() !== after.signalNames.join()) {
    throw new MillraceError(
      'INVALID_POLICY',
      'the two policies were compiled for different vectors of signals',
      {
        value: after.signalNames,
        allowed: before.signalNames.join(', '),
        advice: 'Compile both with the same `signalNames`.',
      },
    );
  }
  const pairs = new Map<number, number>();
  for (const { signals, context } of corpus) {
    const pair = before.decide(signals, context) * after.leaves.length + after.decide(signals, context);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  const moves = [...pairs].map(([pair, requests]) => ({
    from: leafAt(before, Math.floor(pair / after.leaves.length)),
    to: leafAt(after, pair % after.leaves.length),
    requests,
  }));
  return summarise(moves);
}

/** What a diff shows that the author did not declare; empty where it is as expected. */
export function unexpectedChanges(diff: PolicyDiff, expect: Expectation): string[] {
  const found: string[] = [];
  const [low, high] = expect.changedShare ?? [0, 1];
  if (diff.changedShare < low || diff.changedShare > high) {
    found.push(`${percent(diff.changedShare)} of requests change, not ${percent(low)} … ${percent(high)}`);
  }
  for (const [leaf, requests] of diff.changedLeaves) {
    if (expect.leaves === undefined || expect.leaves.includes(leaf)) continue;
    found.push(
      `${percent(requests / diff.requests)} of requests change to leaf ${leaf}, which was not declared`,
    );
  }
  return found;
}

interface Move {
  readonly from: Leaf;
  readonly to: Leaf;
  readonly requests: number;
}

function summarise(moves: readonly Move[]): PolicyDiff {
  const requests = moves.reduce((sum, move) => sum + move.requests, 0);
  const changedMoves = moves.filter(({ from, to }) => !sameTarget(from, to));
  const changed = changedMoves.reduce((sum, move) => sum + move.requests, 0);
  const changedLeaves = new Map<string, number>();
  for (const { to, requests: moved } of changedMoves)
    changedLeaves.set(to.id, (changedLeaves.get(to.id) ?? 0) + moved);
  return {
    requests,
    changed,
    changedShare: requests === 0 ? 0 : changed / requests,
    leaves: group(moves, requests, (leaf) => leaf.id),
    accelerators: group(moves, requests, (leaf) => leaf.target.accelerator),
    changedTargets: changedMoves.map((move) => changedTarget(move, requests)).sort(byRequests),
    changedLeaves,
  };
}

function changedTarget({ from, to, requests }: Move, total: number): ChangedTarget {
  return {
    leaf: { from: from.id, to: to.id },
    from: leafTarget(from),
    to: leafTarget(to),
    ...{ requests, share: requests / total },
  };
}

function byRequests(a: ChangedTarget, b: ChangedTarget): number {
  return (
    b.requests - a.requests || a.leaf.from.localeCompare(b.leaf.from) || a.leaf.to.localeCompare(b.leaf.to)
  );
}

export function leafTarget({ target, variant }: Leaf): LeafTarget {
  return { ...target, variant: variant ?? null };
}

/** Whether two leaves, of whichever policies, ask for the same computation. */
export function sameTarget(a: Leaf, b: Leaf): boolean {
  return (
    a.target.accelerator === b.target.accelerator &&
    a.target.kernel === b.target.kernel &&
    a.target.memory === b.target.memory &&
    a.variant === b.variant
  );
}

function group(moves: readonly Move[], total: number, nameOf: (leaf: Leaf) => string): Movement[] {
  const groups = new Map<string, { from: string; to: string; requests: number }>();
  for (const move of moves) {
    const [from, to] = [nameOf(move.from), nameOf(move.to)];
    const key = `${from} ${to}`;
    const known = groups.get(key) ?? { from, to, requests: 0 };
    known.requests += move.requests;
    groups.set(key, known);
  }
  return [...groups.values()]
    .map((each) => ({ ...each, share: each.requests / total }))
    .sort((a, b) => b.requests - a.requests || a.from.localeCompare(b.from) || a.to.localeCompare(b.to));
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
