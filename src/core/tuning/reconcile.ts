import { own } from '../own.ts';
import type { TuningObservation } from './tuning-observation.ts';
import { AT_HOME, type ConstantState, INITIAL_TUNING, type TuningState } from './tuning-state.ts';
import { doubledPeriods } from './tuning-terms.ts';

/**
 * The state beside what is really live. A step that did not come about (a refused child) is taken back, with a back-off. Anything else that was not
 * this controller's doing is a person's (another policy, a constant set or a step undone by hand): what they chose is home, and what is usual
 * there is learned anew. A constant that was away from home then is left alone for the longest back-off.
 */
export function reconcile(state: TuningState, observation: TuningObservation): TuningState {
  const { last, expected } = state;
  if (last === undefined) return state;
  if (expected === undefined) return isAsBefore(last, observation) ? state : anew(state);
  const { version, name, value, before } = expected;
  if (observation.version === version && isSame({ ...last.values, [name]: value }, observation.values))
    return { ...state, expected: undefined };
  if (!isAsBefore(last, observation)) return anew(state);
  const { terms, period } = state;
  const constant = {
    ...before,
    suspicions: {},
    trial: undefined,
    failures: before.failures + 1,
    blockedUntil: period + 1 + doubledPeriods(terms.backOffPeriods, before.failures, terms),
  };
  return { ...state, expected: undefined, constants: { ...state.constants, [name]: constant } };
}

function anew({ period, steppedPeriod, terms, constants }: TuningState): TuningState {
  const left = Object.entries(constants).flatMap(([name, { trail }]): [string, ConstantState][] =>
    trail.length === 0 ? [] : [[name, { ...AT_HOME, blockedUntil: period + terms.backOffPeriodsMax }]],
  );
  return { ...INITIAL_TUNING, period, steppedPeriod, terms, constants: Object.fromEntries(left) };
}

function isAsBefore(last: TuningObservation, now: TuningObservation): boolean {
  return last.version === now.version && isSame(last.values, now.values);
}

function isSame(a: TuningObservation['values'], b: TuningObservation['values']): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => own(a, name) === own(b, name));
}
