import type { ModelLimits } from '../repository/model-version.ts';
import type { ItemMaker } from './made-item.ts';

/** Candidates of a request, and rows of its sequences. */
export interface ShapeGrid {
  readonly candidates: readonly number[];
  readonly rows: readonly number[];
}

const FIT: ShapeGrid = { candidates: [1, 4, 16, 64, 128, 256, 512, 1_024], rows: [0, 1, 8, 32, 64] };
const HELD_OUT: ShapeGrid = { candidates: [2, 8, 32, 96, 192, 384, 768], rows: [4, 16, 48] };

/** What a version takes of the grid, so that what is measured is what can be asked for. */
export function gridOf(limits: ModelLimits, items: ItemMaker): { fit: ShapeGrid; heldOut: ShapeGrid } {
  const rowsMin = items.mayBeWithoutRows ? 0 : 1;
  const rowsMax = limits.sequenceLengthMax;
  const rowsOf = (grid: ShapeGrid): readonly number[] =>
    items.hasSequence ? within(grid.rows, rowsMin, rowsMax) : [0];
  const largest = items.hasSequence ? rowsMax : 0;
  const candidatesMax = largestFitting(limits, items, largest);
  return {
    fit: { candidates: within(FIT.candidates, 1, candidatesMax), rows: rowsOf(FIT) },
    heldOut: { candidates: within(HELD_OUT.candidates, 1, candidatesMax), rows: rowsOf(HELD_OUT) },
  };
}

export function shapesOf({ candidates, rows }: ShapeGrid): { candidates: number; rows: number }[] {
  return candidates.flatMap((many) => rows.map((length) => ({ candidates: many, rows: length })));
}

function within(sizes: readonly number[], min: number, max: number): number[] {
  const kept = sizes.filter((size) => size >= min && size <= max);
  return kept.length > 0 ? kept : [max];
}

/** Most candidates that a request of such sequences may have: its tensors are within its bytes. */
export function largestFitting(
  { candidatesMax, tensorBytesMax }: ModelLimits,
  items: Pick<ItemMaker, 'bytes'>,
  rows: number,
): number {
  const bytesOf = (candidates: number): number => items.bytes({ candidates, rows });
  const perCandidate = bytesOf(1) - bytesOf(0);
  const room = perCandidate > 0 ? Math.floor((tensorBytesMax - bytesOf(0)) / perCandidate) : candidatesMax;
  return Math.max(1, Math.min(candidatesMax, room));
}
