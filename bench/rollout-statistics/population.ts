import type { Generator } from '../../src/core/random/generator.ts';
import { drawBinomial } from './draws.ts';

/**
 * Keys of Zipf traffic that stick to their arm. Keys are of few kinds, so that an arm is described by how much of its traffic is of which
 * kind. The canary's keys at 5 % are among those at 10 %, and so on: a key draws one of the slices below, once.
 */

const KEYS = 100_000;
const HEAVIEST = 50;
/** Upper ends in percent: an arm of a stage is a whole number of slices. */
export const SLICES = [5, 10, 25, 50, 100];

export interface KeyKind {
  readonly share: number;
  /** Factor of the latency, and of the rates of errors, dead letters and deadline misses. */
  readonly latency: number;
  readonly errors: number;
}

/** Who sends: kinds of keys, and how much the traffic of one key changes from minute to minute (sigma of its logarithm). */
export interface Crowd {
  readonly name: string;
  readonly kinds: readonly KeyKind[];
  readonly activitySigma: number;
}

export const ALIKE: Crowd = {
  name: 'keys all alike',
  kinds: [{ share: 1, latency: 1, errors: 1 }],
  activitySigma: 0,
};

/** A few keys are slower than others, a few fail more often. */
export const MIXED: Crowd = {
  name: 'keys differ',
  kinds: [
    { share: 0.9, latency: 1, errors: 1 },
    { share: 0.05, latency: 1.5, errors: 1 },
    { share: 0.05, latency: 1, errors: 5 },
  ],
  activitySigma: 0.5,
};

/** Where the method ends: one key in a hundred is twice as slow and fails ten times as often, and heavy keys come in bursts. */
export const EXTREME: Crowd = {
  name: 'keys differ extremely',
  kinds: [
    { share: 0.9, latency: 1, errors: 1 },
    { share: 0.05, latency: 1.5, errors: 1 },
    { share: 0.04, latency: 1, errors: 5 },
    { share: 0.01, latency: 2, errors: 10 },
  ],
  activitySigma: 1,
};

/** Keys whose traffic comes and goes are followed one by one. */
const FOLLOWED = 200;
/** Keys up to this rank are drawn one by one; further ones in blocks of almost equal weight. */
const SINGLE_RANK_MAX = 2_000;
const BLOCK_GROWTH = 1.05;

export interface Followed {
  readonly cell: number;
  readonly weight: number;
}

/** Share of all traffic per cell (slice and kind of key), of keys that are analysed. */
export interface Population {
  readonly steady: Float64Array;
  readonly followed: readonly Followed[];
}

const harmonic = Array.from({ length: KEYS }, (_, index) => 1 / (index + 1)).reduce(
  (sum, each) => sum + each,
);
const blocks = blocksOf(SINGLE_RANK_MAX);

/** One draw of everybody's slice and kind. */
export function drawPopulation(random: Generator, crowd: Crowd, withoutHeaviest: boolean): Population {
  const kinds = crowd.kinds.length;
  const cells = SLICES.length * kinds;
  const steady = new Float64Array(cells);
  const followed: Followed[] = [];
  for (let rank = withoutHeaviest ? HEAVIEST + 1 : 1; rank <= SINGLE_RANK_MAX; rank++) {
    const cell = drawSlice(random) * kinds + drawKind(random, crowd);
    const weight = 1 / rank / harmonic;
    if (followed.length < FOLLOWED) followed.push({ cell, weight });
    else steady[cell] = (steady[cell] ?? 0) + weight;
  }
  for (const { keys, weight } of blocks) {
    let keysLeft = keys;
    let shareLeft = 1;
    for (let cell = 0; cell < cells; cell++) {
      const share = sliceShare(Math.floor(cell / kinds)) * (crowd.kinds[cell % kinds]?.share ?? 0);
      const drawn = drawBinomial(random, keysLeft, Math.min(1, share / shareLeft));
      steady[cell] = (steady[cell] ?? 0) + drawn * weight;
      keysLeft -= drawn;
      shareLeft -= share;
    }
  }
  return { steady, followed };
}

function sliceShare(slice: number): number {
  return ((SLICES[slice] ?? 100) - (SLICES[slice - 1] ?? 0)) / 100;
}

function drawSlice(random: Generator): number {
  const percent = random.next() * 100;
  return SLICES.findIndex((end) => percent < end);
}

function drawKind(random: Generator, { kinds }: Crowd): number {
  let rest = random.next();
  const index = kinds.findIndex(({ share }) => {
    rest -= share;
    return rest < 0;
  });
  return Math.max(index, 0);
}

function blocksOf(from: number): { keys: number; weight: number }[] {
  const found: { keys: number; weight: number }[] = [];
  for (let rank = from + 1; rank <= KEYS; ) {
    const end = Math.min(KEYS, Math.ceil(rank * BLOCK_GROWTH));
    let weight = 0;
    for (let each = rank; each <= end; each++) weight += 1 / each / harmonic;
    found.push({ keys: end - rank + 1, weight: weight / (end - rank + 1) });
    rank = end + 1;
  }
  return found;
}
