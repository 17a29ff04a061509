import { nextAbove, nextBelow } from './double.ts';
import type { Formula, RangeTest } from './formula.ts';

/** Values that one operand may have: a closed range of numbers, or a set of texts, or all texts but a set. Never empty. */
export type Region =
  | {
      readonly kind: 'numbers';
      readonly low: number;
      readonly high: number;
      /** Whole numbers only: there is nothing between 3 and 4. */
      readonly whole: boolean;
    }
  | { readonly kind: 'texts'; readonly values: ReadonlySet<string>; readonly inverted: boolean };

/** Requests in which each operand named is there, and in its region. The others may be anything, or missing. */
export type Box = ReadonlyMap<string, Region>;

export const EVERYTHING: Box = new Map();

/** The requests for which a formula is true, as a union of boxes; undefined where that takes more than `boxesMax`. */
export function boxesOf(formula: Formula, boxesMax: number): readonly Box[] | undefined {
  switch (formula.kind) {
    case 'range':
      return boxOf(formula);
    case 'any': {
      const boxes = formula.of.map((operand) => boxesOf(operand, boxesMax));
      const union = boxes.includes(undefined) ? undefined : boxes.flatMap((each) => each ?? []);
      return union === undefined || union.length > boxesMax ? undefined : union;
    }
    case 'all':
      return formula.of.reduce<readonly Box[] | undefined>(
        (boxes, operand) => {
          const more = boxesOf(operand, boxesMax);
          return boxes === undefined || more === undefined ? undefined : product(boxes, more, boxesMax);
        },
        [EVERYTHING],
      );
    default:
      return formula satisfies never;
  }
}

/** All intersections, as far as they are not empty, of one of these with one of those; undefined if they are too many. */
export function product(
  left: readonly Box[],
  right: readonly Box[],
  boxesMax: number,
): readonly Box[] | undefined {
  if (left.length * right.length > boxesMax) return undefined;
  return left.flatMap((a) => right.flatMap((b) => intersectBoxes(a, b) ?? []));
}

/**
 * What is left of a box, as boxes that don't overlap; the very same box where nothing was taken.
 *
 * A box that is removed but names an operand that `box` does not name takes nothing: among the requests of `box`, those that
 * lack the operand all remain, so it can't be what empties `box`; and that is the only question asked here.
 */
export function subtractBox(box: Box, removed: Box): readonly Box[] {
  const pieces: Box[] = [];
  let inside = box;
  for (const [key, region] of removed) {
    const known = inside.get(key);
    const common = known === undefined ? undefined : intersectRegions(known, region);
    if (known === undefined || common === undefined) return [box];
    for (const outside of subtractRegion(known, region)) pieces.push(new Map(inside).set(key, outside));
    inside = new Map(inside).set(key, common);
  }
  return pieces;
}

function boxOf({ operand, low, high }: RangeTest): Box[] {
  if (operand.kind === 'text') {
    return toBox(operand.name, texts(operand.values, low === 0));
  }
  const whole =
    operand.kind === 'order' || operand.kind === 'same-text' || (operand.kind === 'signal' && operand.whole);
  return toBox(operand.key, numbers(low, high, whole));
}

function toBox(key: string, region: Region | undefined): Box[] {
  return region === undefined ? [] : [new Map([[key, region]])];
}

function intersectBoxes(left: Box, right: Box): Box | undefined {
  const box = new Map(left);
  for (const [key, region] of right) {
    const known = box.get(key);
    const common = known === undefined ? region : intersectRegions(known, region);
    if (common === undefined) return undefined;
    box.set(key, common);
  }
  return box;
}

function intersectRegions(a: Region, b: Region): Region | undefined {
  if (a.kind === 'numbers' && b.kind === 'numbers') {
    return numbers(Math.max(a.low, b.low), Math.min(a.high, b.high), a.whole);
  }
  if (a.kind !== 'texts' || b.kind !== 'texts') return undefined;
  if (a.inverted && b.inverted) return texts(new Set([...a.values, ...b.values]), true);
  if (a.inverted) return intersectRegions(b, a);
  return texts(new Set([...a.values].filter((value) => b.values.has(value) !== b.inverted)), false);
}

function subtractRegion(from: Region, removed: Region): Region[] {
  if (from.kind === 'numbers' && removed.kind === 'numbers') {
    const below = numbers(from.low, Math.min(from.high, nextBelow(removed.low)), from.whole);
    const above = numbers(Math.max(from.low, nextAbove(removed.high)), from.high, from.whole);
    return [below, above].filter((region) => region !== undefined);
  }
  if (removed.kind !== 'texts') return [from];
  return [intersectRegions(from, { ...removed, inverted: !removed.inverted })].filter(
    (region) => region !== undefined,
  );
}

/** Undefined where the range is empty, or a bound is NaN. */
function numbers(low: number, high: number, whole: boolean): Region | undefined {
  const from = whole ? Math.ceil(low) : low;
  const to = whole ? Math.floor(high) : high;
  return from <= to ? { kind: 'numbers', low: from, high: to, whole } : undefined;
}

function texts(values: ReadonlySet<string>, inverted: boolean): Region | undefined {
  return values.size === 0 && !inverted ? undefined : { kind: 'texts', values, inverted };
}
