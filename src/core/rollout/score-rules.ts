import { SHIFT_MAX } from '../policy/parse-guardrails.ts';
import { reasonOf, rounded } from './reason-text.ts';
import type { HoldReason } from './rollout-event.ts';
import { type RolloutState, stageOf } from './rollout-state.ts';
import type { HeadScores } from './score-observation.ts';
import {
  countOf,
  type HeadShift,
  headShift,
  judgeIndex,
  judgeMean,
  type ShiftFinding,
} from './score-shift.ts';

/** A head that one arm alone has is told from one that is merely rare by so many scores of the other arm, for as many requests. */
const ONE_SIDED_MIN = 100;

export interface JudgedHead extends HeadShift {
  readonly head: string;
  readonly histogram: ShiftFinding;
  readonly mean: ShiftFinding;
}

/** What each head of both arms shows of the stage so far. */
export function judgeHeads({ scores, terms }: RolloutState): JudgedHead[] {
  const { scorePsiMax, scoreMeanShiftMax } = terms.limits;
  return Object.entries(scores)
    .filter(([, head]) => isInBoth(head))
    .map(([head, seen]) => {
      const shift = headShift(seen);
      return {
        head,
        ...shift,
        histogram: isBounded(scorePsiMax) ? judgeIndex(shift.psi, shift.psiNoise, scorePsiMax) : 'within',
        mean: isBounded(scoreMeanShiftMax)
          ? judgeMean(shift.meanShift, shift.meanShiftError, scoreMeanShiftMax)
          : 'within',
      };
    });
}

/** Why scores put the rollout on hold. A shift is no harm by itself: a better model may well score otherwise. A person says so. */
export function scoreReasons(rollout: RolloutState): HoldReason[] {
  const { scorePsiMax, scoreMeanShiftMax } = rollout.terms.limits;
  const heads = judgeHeads(rollout);
  const shapes = heads.filter(({ histogram }) => histogram === 'over').map(psiText);
  const means = heads.filter(({ mean }) => mean === 'over').map(meanText);
  const oneSided = oneSidedHeads(rollout);
  return [
    ...reasonOf('score-histogram', shapes, `scores are spread otherwise (PSI, at most ${scorePsiMax})`),
    ...reasonOf(
      'score-mean',
      means,
      `the mean score moved (in standard deviations, at most ${scoreMeanShiftMax})`,
    ),
    ...reasonOf('score-heads', oneSided, 'one arm has no score of a head'),
  ];
}

/** What is still to be known of the scores; nothing passes for being inconclusive. Empty where scores are no guardrail. */
export function missingScores(rollout: RolloutState): string[] {
  if (!isGuarded(rollout)) return [];
  const heads = judgeHeads(rollout);
  if (heads.length === 0) return ['no scores of both arms were compared yet'];
  return [
    ...heads
      .filter(({ histogram }) => histogram === 'unclear')
      .map((head) => `not clear yet: ${psiText(head)}`),
    ...heads.filter(({ mean }) => mean === 'unclear').map((head) => `not clear yet: ${meanText(head)}`),
  ];
}

function isGuarded({ terms }: RolloutState): boolean {
  return terms.limits.scorePsiMax !== undefined || terms.limits.scoreMeanShiftMax !== undefined;
}

function isBounded(limit: number | undefined): limit is number {
  return limit !== undefined && limit < SHIFT_MAX;
}

/** In shadow only a candidate that scores beside the live one has any. */
function oneSidedHeads(rollout: RolloutState): string[] {
  if (!isGuarded(rollout)) return [];
  const { percent } = stageOf(rollout);
  const share = rollout.evidence === undefined ? percent / 100 : shareOf(rollout.evidence.sampleRatio);
  return Object.entries(rollout.scores).flatMap(([head, { stable, candidate }]) => {
    const [mine, theirs] = [candidate, stable].map((groups) =>
      groups.reduce((sum, group) => sum + countOf(group), 0),
    );
    if (mine === undefined || theirs === undefined) return [];
    const expected = share < 1 ? (theirs * share) / (1 - share) : 0;
    if (mine === 0 && expected >= ONE_SIDED_MIN)
      return [`${head}: ${theirs} of the control, none of the candidate`];
    if (theirs === 0 && mine >= ONE_SIDED_MIN)
      return [`${head}: ${mine} of the candidate, none of the control`];
    return [];
  });
}

function shareOf({ canary, stable }: { canary: number; stable: number }): number {
  return canary + stable === 0 ? 0 : canary / (canary + stable);
}

function isInBoth({ stable, candidate }: HeadScores): boolean {
  return [stable, candidate].every((groups) => groups.some((group) => countOf(group) > 0));
}

function psiText({ head, psi, psiNoise }: JudgedHead): string {
  return `${head} ${round(psi)}, of which ${round(psiNoise)} may be noise`;
}

function meanText({ head, stableMean, candidateMean, meanShift, meanShiftError }: JudgedHead): string {
  return `${head} ${round(stableMean)} → ${round(candidateMean)}, ${round(meanShift)} ± ${round(meanShiftError)}`;
}

function round(value: number): number {
  return rounded(value, 3);
}
