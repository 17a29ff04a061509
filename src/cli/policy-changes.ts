import type { CompiledPolicy, Leaf } from '../core/policy/compile.ts';
import {
  type ChangedTarget,
  type LeafTarget,
  leafTarget,
  type Movement,
  sameTarget,
} from '../core/policy/diff.ts';
import type { ModelChoice, PolicyDocument } from '../core/policy/document.ts';
import { tableLines } from './table.ts';

/** How many requests of a corpus end in a leaf, by either policy; null where it has no such leaf. */
export interface LeafShare {
  leaf: string;
  before: number | null;
  after: number | null;
}

/** Something that both policies say, otherwise: for a family or a leaf, whether or not a request of the corpus meets it. */
export interface Change {
  what: 'model' | 'target' | 'fallback';
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

/** Model versions that differ, and targets and fallbacks of leaves that both have. */
export function documentChanges(before: CompiledPolicy, after: CompiledPolicy): Change[] {
  return [
    ...modelChanges(before.document, after.document),
    ...targetChanges(before, after),
    ...fallbackChanges(before, after),
  ];
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

function targetChanges(before: CompiledPolicy, after: CompiledPolicy): Change[] {
  const known = new Map(before.leaves.map((leaf) => [leaf.id, leaf]));
  return after.leaves.flatMap((leaf): Change[] => {
    const old = known.get(leaf.id);
    if (old === undefined || sameTarget(old, leaf)) return [];
    const [from, to] = [targetText(leafTarget(old)), targetText(leafTarget(leaf))];
    return [{ what: 'target', of: leaf.id, before: from, after: to }];
  });
}

/** `gpu-v100/sparse/l2`, and the variant that the leaf insists on. */
function targetText({ accelerator, kernel, memory, variant }: LeafTarget): string {
  return [accelerator, kernel, memory, ...(variant === null ? [] : [variant])].join('/');
}

/** What each changed request asked for, and asks for now. */
export function changedTargetLines(changed: readonly ChangedTarget[]): string[] {
  return tableLines(
    ['from leaf', 'to leaf', 'from target', 'to target', 'requests', 'share'],
    changed.map(({ leaf, from, to, requests, share }) => [
      ...[leaf.from, leaf.to, targetText(from), targetText(to)],
      ...[String(requests), percent(share)],
    ]),
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
