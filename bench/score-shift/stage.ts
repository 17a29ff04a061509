import type { Generator } from '../../src/core/random/generator.ts';
import { DEFAULT_LIMITS } from '../../src/core/rollout/rollout-terms.ts';
import type { HeadScores, ScoreGroup } from '../../src/core/rollout/score-observation.ts';
import { headShift, judgeIndex, judgeMean } from '../../src/core/rollout/score-shift.ts';
import { KEY_GROUPS } from '../../src/core/scores/key-group.ts';
import { drawNormal } from '../rollout-statistics/draws.ts';
import { drawKey, drawKeys, type Keys } from './keys.ts';

/** Deciles of the standard normal. */
const EDGES = [-1.2816, -0.8416, -0.5244, -0.2533, 0, 0.2533, 0.5244, 0.8416, 1.2816];
const LOOK_S = 10;
const STAGE_S = 900;

export interface Scenario {
  readonly keys: number;
  readonly likeness: number;
  /** Of the canary's scores, in standard deviations. */
  readonly meanShift: number;
  /** Factor of the canary's standard deviation. */
  readonly spread: number;
  readonly requestsPerS: number;
}

export interface StageOutcome {
  /** When the stage was first on hold by the rules; undefined for never. */
  readonly heldAfterS: number | undefined;
  /** A plain threshold on PSI, looked at as often, would have held it. */
  readonly plainHeld: boolean;
  /** What the last look said lets the stage pass. */
  readonly passes: boolean;
}

/** The 15 minutes of a canary of 5 %, with a look every 10 s. */
export function runStage(random: Generator, scenario: Scenario): StageOutcome {
  const { scorePsiMax = Number.POSITIVE_INFINITY, scoreMeanShiftMax = Number.POSITIVE_INFINITY } =
    DEFAULT_LIMITS;
  const keys = drawKeys(random, scenario.keys, 5, scenario.likeness);
  const head = { edges: EDGES.map((_, index) => index), stable: newGroups(), candidate: newGroups() };
  let heldAfterS: number | undefined;
  let plainHeld = false;
  let passes = false;
  for (let atS = LOOK_S; atS <= STAGE_S; atS += LOOK_S) {
    for (let i = 0; i < LOOK_S * scenario.requestsPerS; i++) addRequest(random, scenario, keys, head);
    const shift = headShift(head);
    const findings = [
      judgeIndex(shift.psi, shift.psiNoise, scorePsiMax),
      judgeMean(shift.meanShift, shift.meanShiftError, scoreMeanShiftMax),
    ];
    if (findings.includes('over')) heldAfterS ??= atS;
    passes = findings.every((finding) => finding === 'within');
    plainHeld ||= shift.psi > scorePsiMax || shift.meanShift > scoreMeanShiftMax;
  }
  return { heldAfterS, plainHeld, passes };
}

type Mutable = { -readonly [K in keyof ScoreGroup]: K extends 'bins' ? number[] : ScoreGroup[K] };
type Counts = Omit<HeadScores, 'stable' | 'candidate'> & Record<'stable' | 'candidate', Mutable[]>;

function newGroups(): Mutable[] {
  return Array.from({ length: KEY_GROUPS }, () => ({
    sum: 0,
    sumOfSquares: 0,
    bins: new Array<number>(EDGES.length + 1).fill(0),
  }));
}

function addRequest(random: Generator, scenario: Scenario, keys: Keys, head: Counts): void {
  const key = drawKey(random, keys);
  const isCanary = keys.arms[key] === 1;
  const own = drawNormal(random) * Math.sqrt(1 - scenario.likeness);
  const plain = (keys.levels[key] ?? 0) + own;
  const score = isCanary ? plain * scenario.spread + scenario.meanShift : plain;
  const group = (isCanary ? head.candidate : head.stable)[keys.groups[key] ?? 0];
  if (group === undefined) return;
  const above = EDGES.findIndex((edge) => score < edge);
  const bin = above === -1 ? EDGES.length : above;
  group.bins[bin] = (group.bins[bin] ?? 0) + 1;
  group.sum += score;
  group.sumOfSquares += score * score;
}
