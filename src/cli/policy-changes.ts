import type { CompiledPolicy, Leaf } from '../core/policy/compile.ts';
import type { Movement } from '../core/policy/diff.ts';
import type { ModelChoice, PolicyDocument } from '../core/policy/document.ts';
import { tableLines } from './table.ts';

/** How many requests of a corpus end in a leaf, by either policy; null where it has no such leaf. */
export interface LeafShare {
  leaf: string;
  before: number | null;
  after: number | null;
}

/** Something that either policy says for a family or a leaf, and that no target shows. */
export interface Change {
  what: 'model' | 'fallback';
  /** `ranker baseline`, or the leaf. */
  of: string;
  before: string | null;
  after: string | null;
}

/** Every leaf of either policy, in the order of the first, then what is new in the second. */
export function leafShares(
  before: CompiledPolicy,
  after: CompiledPolicy,
  leaves: readonly Movement[],
): LeafShare[] {
  const requests = (side: 'from' | 'to', policy: CompiledPolicy, leaf: string): number | null => {
    if (!policy.leaves.some(({ id }) => id === leaf)) return null;
    return leaves.reduce((sum, move) => (move[side] === leaf ? sum + move.requests : sum), 0);
  };
  const names = new Set([...before.leaves, ...after.leaves].map(({ id }) => id));
  return [...names].map((leaf) => ({
    leaf,
    before: requests('from', before, leaf),
    after: requests('to', after, leaf),
  }));
}

/** Model versions and fallbacks that differ. */
export function documentChanges(before: CompiledPolicy, after: CompiledPolicy): Change[] {
  return [...modelChanges(before.document, after.document), ...fallbackChanges(before, after)];
}

const VARIANTS = ['baseline', 'enhanced'] as const satisfies readonly (keyof ModelChoice)[];

function modelChanges(before: PolicyDocument, after: PolicyDocument): Change[] {
  const families = new Set([...before.models.keys(), ...after.models.keys()]);
  return [...families].sort().flatMap((family) =>
    VARIANTS.flatMap((variant): Change[] => {
      const from = before.models.get(family)?.[variant] ?? null;
      const to = after.models.get(family)?.[variant] ?? null;
      return from === to ? [] : [{ what: 'model', of: `${family} ${variant}`, before: from, after: to }];
    }),
  );
}

function fallbackChanges(before: CompiledPolicy, after: CompiledPolicy): Change[] {
  const known = new Map(before.leaves.map((leaf) => [leaf.id, leaf]));
  const text = ({ fallback }: Leaf): string | null => (fallback.length === 0 ? null : fallback.join(', '));
  return after.leaves.flatMap((leaf): Change[] => {
    const old = known.get(leaf.id);
    if (old === undefined || text(old) === text(leaf)) return [];
    return [{ what: 'fallback', of: leaf.id, before: text(old), after: text(leaf) }];
  });
}

/** `leaf  before  share  after  share`; leaves that no request reaches are counted only. */
export function leafShareLines(shares: readonly LeafShare[], requests: number): string[] {
  const reached = shares.filter(({ before, after }) => (before ?? 0) + (after ?? 0) > 0);
  const cells = (many: number | null): string[] =>
    many === null ? ['–', '–'] : [String(many), percent(many / requests)];
  const more = shares.length - reached.length;
  return [
    ...tableLines(
      ['leaf', 'before', 'share', 'after', 'share'],
      reached.map(({ leaf, before, after }) => [leaf, ...cells(before), ...cells(after)]),
    ),
    ...(more > 0 ? [`and ${more} that no request ends in`] : []),
  ];
}

/** One line for each, and what a model version does that no corpus shows. */
export function changeLines(changes: readonly Change[]): string[] {
  const lines = changes.map(({ what, of, before, after }) => {
    const none = what === 'model' ? 'none named' : 'none';
    return `${what} of ${of}: ${before ?? none} → ${after ?? none}`;
  });
  const isModel = changes.some(({ what }) => what === 'model');
  return isModel
    ? [...lines, 'a model version answers every request of its family that names none, whatever its leaf']
    : lines;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
