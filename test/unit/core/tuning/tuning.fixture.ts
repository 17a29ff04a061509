import { stepTunable } from '../../../../src/core/policy/compile.ts';
import type { Tunable } from '../../../../src/core/policy/document.ts';
import { decideTuning } from '../../../../src/core/tuning/decide-tuning.ts';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import type { TuningEvent, TuningStepped } from '../../../../src/core/tuning/tuning-event.ts';
import type {
  Direction,
  DomainObservation,
  Effect,
  LatencySummary,
  RolloutPhase,
  TuningObservation,
} from '../../../../src/core/tuning/tuning-observation.ts';
import { INITIAL_TUNING, limitsOf, type TuningState } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING, type TuningTerms } from '../../../../src/core/tuning/tuning-terms.ts';

export const FLOOR: Tunable = {
  name: 'floor',
  default: 100,
  min: 40,
  max: 250,
  step: { by: 'percent', size: 25 },
};
export const HBM = 'a100/hbm';
export const L2 = 'v100/l2';

/** How a domain does in one period. */
export interface Doing {
  /** Times the usual, of kernels and of the whole way. */
  readonly factor?: number;
  /** The same for the queue; `factor` unless given. */
  readonly queueFactor?: number;
  /** Of kernels alone; `factor` unless given. */
  readonly kernelFactor?: number | undefined;
  readonly requests?: number;
  readonly utilisation?: number;
}

export interface Told {
  readonly state: TuningState;
  readonly events: readonly TuningEvent[];
  readonly atMs: number;
  readonly version: number;
  readonly value: number;
}

export const TOLD: Told = { state: INITIAL_TUNING, events: [], atMs: 0, version: 1, value: FLOOR.default };

export interface Period {
  readonly hbm?: Doing;
  readonly l2?: Doing;
  readonly rollout?: RolloutPhase;
  /** The child of a step is refused: the values stay. */
  readonly refused?: boolean;
  /** What a person sets in this period. */
  readonly set?: number;
  readonly afterMs?: number;
  readonly blocked?: string;
  readonly share?: number;
}

/** The story goes on by one period; a step takes effect at its end, unless it is refused. */
export function period(told: Told, given: Period = {}, terms: TuningTerms = DEFAULT_TUNING): Told {
  const set = given.set !== undefined && given.set !== told.value;
  const before: Told = set ? { ...told, value: given.set ?? told.value, version: told.version + 1 } : told;
  const observation = observe(before, given, terms);
  const events = decideTuning(before.state, observation, terms);
  const state = events.reduce(evolveTuning, before.state);
  const step = stepsOf(events)[0];
  const isTaken = step !== undefined && given.refused !== true;
  return {
    state,
    events: [...told.events, ...events],
    atMs: observation.atMs,
    version: isTaken ? step.version : before.version,
    value: isTaken ? step.to : before.value,
  };
}

export function periods(
  told: Told,
  count: number,
  given: Period = {},
  terms: TuningTerms = DEFAULT_TUNING,
): Told {
  let next = told;
  for (let i = 0; i < count; i += 1) next = period(next, given, terms);
  return next;
}

export function stepsOf(events: readonly TuningEvent[]): TuningStepped[] {
  return events.filter((event) => event.type === 'tuning-stepped');
}

/** Steps since an earlier point of the story. */
export function stepsSince(earlier: Told, told: Told): TuningStepped[] {
  return stepsOf(told.events.slice(earlier.events.length));
}

export function observe(told: Told, given: Period, terms: TuningTerms): TuningObservation {
  const limits = limitsOf(told.state);
  const domain = (pool: string, memory: string, doing: Doing = {}): DomainObservation => {
    const { factor = 1, requests = 900 } = doing;
    const kernelFactor = doing.kernelFactor ?? factor;
    // what takes twice as long keeps its device busy for twice as long
    const { utilisation = Math.min(1, (0.35 * kernelFactor * requests) / 900) } = doing;
    const known = limits[`${pool}/${memory}`];
    return {
      pool,
      memory,
      requests,
      utilisation,
      simulated: false,
      latency: {
        queue: summary(requests, 50 * (doing.queueFactor ?? factor), known?.queue),
        kernel: summary(requests, 100 * kernelFactor, known?.kernel),
        endToEnd: summary(requests, 150 * factor, known?.endToEnd),
      },
    };
  };
  return {
    atMs: told.atMs + (given.afterMs ?? terms.periodMs),
    periodMs: terms.periodMs,
    version: told.version,
    values: { floor: told.value },
    nextVersion: told.version + 1,
    rollout: given.rollout ?? 'none',
    domains: { [HBM]: domain('a100', 'hbm', given.hbm), [L2]: domain('v100', 'l2', given.l2) },
    effects: effects(told.value, given),
  };
}

/** Exponential around its median: 1 in 10 takes more than 3.32 × it. */
function summary(count: number, p50Ms: number, limitMs: number | undefined): LatencySummary {
  const quantile = (q: number): number => (p50Ms * -Math.log(1 - q)) / Math.LN2;
  const share = limitMs === undefined ? 0 : Math.exp((-limitMs * Math.LN2) / p50Ms);
  return { count, p50Ms, p90Ms: quantile(0.9), p99Ms: quantile(0.99), over: Math.round(count * share) };
}

function effects(value: number, { blocked, share = 0.16 }: Period): Effect[] {
  return (['up', 'down'] as Direction[]).flatMap((direction) => {
    const to = stepTunable(FLOOR, value, direction);
    const [from, into] = direction === 'up' ? [HBM, L2] : [L2, HBM];
    const effect: Effect = {
      name: FLOOR.name,
      direction,
      to,
      losing: [{ domain: from, share }],
      gaining: [{ domain: into, share: share / 2 }],
      blocked,
    };
    return to === value ? [] : [effect];
  });
}
