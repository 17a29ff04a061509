import type { HeadScores, ScoreGroup } from './score-observation.ts';

/** How far a head's scores in the candidate's arm are from those in the control's. */
export interface HeadShift {
  readonly stableCount: number;
  readonly candidateCount: number;
  /** Population stability index. */
  readonly psi: number;
  /** What it would be on average between arms that do not differ. */
  readonly psiNoise: number;
  readonly stableMean: number;
  readonly candidateMean: number;
  /** Distance of the means in standard deviations of the control (Glass's Δ). */
  readonly meanShift: number;
  /** Standard error of that distance. */
  readonly meanShiftError: number;
}

/** So many times its noise a shift must lie beyond the limit before it counts: decision 0015 has how often that is wrong. */
export const NOISE_FACTOR = 4;

/** So many standard errors under the limit a shift of the mean must lie before it is shown to be within it: one-sided, 95 %, as the evidence of 20 that a stage needs. */
export const ERROR_FACTOR = 1.645;

/**
 * Sums of scores have nine digits in the log, so of a mean's square this part is rounding. A variance below it is not told from none: of a head that
 * says the same in both arms, or nearly, the rounding would be a shift.
 */
const VARIANCE_RESOLUTION = 2e-8;

/**
 * PSI = Σ over bins of (p − q)·ln(p / q), p and q the shares of the candidate's and the control's scores in the bin (Lewis, An Introduction to Credit
 * Scoring, 1994; Siddiqi, Credit Risk Scorecards, 2006: below 0.1 nothing moved, above 0.25 much did). Each share leans on the pooled one by the
 * weight of one score, so that a bin that one arm never reached has a logarithm.
 *
 * Of n and m independent scores that do not differ, PSI / (1/n + 1/m) is χ² with one degree of freedom less than there are bins (Yurdakul,
 * Statistical Properties of Population Stability Index, 2018), so on average PSI is (bins − 1)·(1/n + 1/m). Scores of one key are not independent:
 * the groups of keys say what the variance really is, and the larger of both counts.
 */
export function headShift({ stable, candidate }: HeadScores): HeadShift {
  const q = totalOf(stable);
  const p = totalOf(candidate);
  const pooled = p.bins.map((count, bin) => (count + (q.bins[bin] ?? 0)) / (p.count + q.count));
  const used = pooled.filter((share) => share > 0).length;
  const psi = pooled.reduce((sum, share, bin) => {
    if (!(share > 0)) return sum;
    const mine = ((p.bins[bin] ?? 0) + share) / (p.count + 1);
    const theirs = ((q.bins[bin] ?? 0) + share) / (q.count + 1);
    return sum + (mine - theirs) * Math.log(mine / theirs);
  }, 0);
  const noiseOf = (groups: readonly ScoreGroup[], total: Total): number =>
    Math.max((used - 1) / total.count, spreadOfGroups(groups, total, pooled));
  const stableDeviation = Math.sqrt(Math.max(q.variance, VARIANCE_RESOLUTION * q.mean ** 2));
  const distance = Math.abs(p.mean - q.mean);
  return {
    stableCount: q.count,
    candidateCount: p.count,
    psi,
    psiNoise: noiseOf(stable, q) + noiseOf(candidate, p),
    stableMean: q.mean,
    candidateMean: p.mean,
    meanShift: distance === 0 ? 0 : distance / stableDeviation,
    meanShiftError:
      Math.sqrt(varianceOfMean(stable, q) + varianceOfMean(candidate, p)) / (stableDeviation || 1),
  };
}

export type ShiftFinding = 'within' | 'over' | 'unclear';

/** Over only where noise cannot explain it. Within by its value alone: noise makes an index larger, and hardly ever smaller. */
export function judgeIndex(psi: number, noise: number, limit: number): ShiftFinding {
  if (psi <= limit) return 'within';
  return psi - NOISE_FACTOR * noise > limit ? 'over' : 'unclear';
}

/** Over only where the error cannot explain it, and within only where the error cannot hide more: a mean of few scores may be near by chance. */
export function judgeMean(shift: number, error: number, limit: number): ShiftFinding {
  if (shift - NOISE_FACTOR * error > limit) return 'over';
  return shift + ERROR_FACTOR * error <= limit ? 'within' : 'unclear';
}

interface Total {
  readonly count: number;
  readonly mean: number;
  readonly variance: number;
  readonly bins: readonly number[];
}

function totalOf(groups: readonly ScoreGroup[]): Total {
  const [first, ...others] = groups;
  if (first === undefined) return { count: 0, mean: 0, variance: 0, bins: [] };
  const bins = first.bins.map((count, bin) =>
    others.reduce((sum, group) => sum + (group.bins[bin] ?? 0), count),
  );
  const count = bins.reduce((sum, each) => sum + each, 0);
  const sum = groups.reduce((all, group) => all + group.sum, 0);
  const sumOfSquares = groups.reduce((all, group) => all + group.sumOfSquares, 0);
  const mean = count === 0 ? 0 : sum / count;
  const variance = count === 0 ? 0 : Math.max(0, sumOfSquares / count - mean * mean);
  return { count, mean, variance, bins };
}

export function countOf({ bins }: ScoreGroup): number {
  return bins.reduce((sum, each) => sum + each, 0);
}

/** Σ over bins of the variance of the arm's share, as groups of keys show it, over the pooled share. */
function spreadOfGroups(groups: readonly ScoreGroup[], total: Total, pooled: readonly number[]): number {
  return pooled.reduce((sum, share, bin) => {
    if (!(share > 0)) return sum;
    const inBin = total.bins[bin] ?? 0;
    return sum + varianceOfRatio(groups, total.count, inBin, (group) => group.bins[bin] ?? 0) / share;
  }, 0);
}

/** At least that of independent scores. */
function varianceOfMean(groups: readonly ScoreGroup[], total: Total): number {
  const ofGroups = varianceOfRatio(groups, total.count, total.mean * total.count, (group) => group.sum);
  return Math.max(total.variance / total.count, ofGroups);
}

/** Variance of (Σ of something over all groups) / (Σ of counts), a ratio estimate by random groups; none is known from a single group. */
function varianceOfRatio(
  groups: readonly ScoreGroup[],
  count: number,
  sum: number,
  of: (group: ScoreGroup) => number,
): number {
  const ratio = sum / count;
  let squares = 0;
  let used = 0;
  for (const group of groups) {
    const size = countOf(group);
    if (size === 0) continue;
    used += 1;
    squares += (of(group) - ratio * size) ** 2;
  }
  return used < 2 ? Number.POSITIVE_INFINITY : ((used / (used - 1)) * squares) / count ** 2;
}
