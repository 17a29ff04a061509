import type { ControllerInput } from '../control/controller-command.ts';
import { type ControllerEvent, TUNING } from '../control/controller-event.ts';
import {
  type ControllerState,
  conclude,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../control/controller-state.ts';
import { isSameJson } from '../control/same-json.ts';
import { concludeTuning, decideTuning } from '../tuning/decide-tuning.ts';
import type { TuningEvent } from '../tuning/tuning-event.ts';

/** Where the log and the rules say different things. */
export interface Disagreement {
  /** Place in the log, from 0. */
  readonly index: number;
  readonly recorded: ControllerEvent;
  /** What the rules make of the log up to there; undefined where they make nothing of it. */
  readonly derived: ControllerEvent | undefined;
}

export interface Replay {
  readonly state: ControllerState;
  /** Events that were derived again and are the same; of a child by tuning, all but its text and digest. */
  readonly confirmed: number;
  /** Events that nothing in the log explains: leaderships, and refusals, whose commands the log does not keep. */
  readonly taken: number;
  readonly disagreements: readonly Disagreement[];
  /** What follows from the last look or command of a scope and is not in the log yet: its leader died before it could write it. */
  readonly pending: readonly ControllerEvent[];
}

/**
 * Derives every decision again from what the log says was commanded and observed, and compares. Where they differ the log's event counts, as it
 * did for the routers.
 *
 * @param log the events in force, in their order: see `inForce`
 */
export function replay(log: readonly ControllerEvent[]): Replay {
  let state = INITIAL_CONTROLLER_STATE;
  let confirmed = 0;
  let taken = 0;
  const disagreements: Disagreement[] = [];
  const scopes = new Set<string>();
  log.forEach((recorded, index) => {
    const derived = derive(state, recorded);
    if (derived === 'taken') taken += 1;
    else if (isSameJson(derived, recorded)) confirmed += 1;
    else disagreements.push({ index, recorded, derived });
    state = evolve(state, recorded);
    if ('scope' in recorded) scopes.add(recorded.scope);
  });
  const pending = [...scopes].flatMap((scope) => conclude(state, scope));
  return { state, confirmed, taken, disagreements, pending };
}

/** The event that the rules have at this place of the log. What follows by itself comes before anything new. */
function derive(state: ControllerState, recorded: ControllerEvent): ControllerEvent | undefined | 'taken' {
  if (recorded.type === 'leadership-taken' || recorded.type === 'command-refused') return 'taken';
  const [due] = conclude(state, recorded.scope);
  if (due !== undefined) return due;
  if (recorded.type === 'policy-tuned') return deriveTuned(state, recorded);
  if (isOfTuning(recorded)) return deriveTuning(state, recorded);
  const input = inputOf(state, recorded);
  return input === undefined ? undefined : decide(state, input)[0];
}

type OfTuning = Extract<ControllerEvent, { type: TuningEvent['type'] }>;

function isOfTuning(event: ControllerEvent): event is OfTuning {
  return (
    event.type === 'tuning-looked' || event.type === 'tuning-stepped' || event.type === 'tuning-backed-off'
  );
}

/** A look is derived from what it saw; a step or a back-off from the look before. */
function deriveTuning(state: ControllerState, recorded: OfTuning): ControllerEvent | undefined {
  const { tuning } = scopeState(state, recorded.scope);
  const [derived] =
    recorded.type === 'tuning-looked'
      ? decideTuning(tuning, recorded.observation, recorded.terms)
      : concludeTuning(tuning);
  return derived && { ...derived, commandId: '', scope: recorded.scope, actor: TUNING };
}

/**
 * The child of a step, or what a person set. Its text and digest are made outside of the log, of its parent's text; that there had to be one now, under
 * which version, with which constant at which value, is derived.
 */
function deriveTuned(
  state: ControllerState,
  recorded: Extract<ControllerEvent, { type: 'policy-tuned' }>,
): ControllerEvent | undefined {
  const { commandId, scope, actor, name, value, policy, text, atMs } = recorded;
  if (commandId !== '') {
    const sent = { commandId, scope, actor };
    return decide(state, { kind: 'tune', ...sent, name, value, child: { policy, text }, atMs })[0];
  }
  const { tuning, live, epoch } = scopeState(state, scope);
  const { expected, last } = tuning;
  if (expected === undefined || last === undefined || live?.version !== last.version) return undefined;
  return {
    ...recorded,
    actor: TUNING,
    name: expected.name,
    value: expected.value,
    policy: { ...policy, version: expected.version },
    atMs: last.atMs,
    epoch: epoch + 1,
  };
}

/** What must have been asked for such an event to be the answer; undefined for what is no answer but a consequence. */
function inputOf(
  state: ControllerState,
  event: Exclude<
    ControllerEvent,
    { type: 'leadership-taken' | 'command-refused' | 'policy-tuned' | TuningEvent['type'] }
  >,
): ControllerInput | undefined {
  const { commandId, scope, actor } = event;
  const sent = { commandId, scope, actor };
  if (event.type === 'rollout-looked') return { kind: 'look', scope, observation: event.observation };
  // How far the store was ahead of the log, the log does not say.
  if (event.type === 'store-reseeded')
    return { kind: 'reseed', ...sent, ...(commandId === '' && { above: event.epoch - 1 }) };
  if (commandId === '') return undefined;
  switch (event.type) {
    case 'policy-published': {
      const { policy, live, start } = event;
      return { kind: 'publish-policy', ...sent, policy, mode: live ? 'immediate' : 'staged', start };
    }
    case 'model-published':
      return { kind: 'publish-model', ...sent, model: event.model };
    case 'key-revoked':
      return { kind: 'revoke-key', ...sent, keyId: event.keyId };
    case 'policy-rolled-back':
      return { kind: 'roll-back', ...sent, toVersion: event.policy.version, atMs: event.atMs };
    case 'rollout-started': {
      const { candidate, terms, atMs } = event;
      return { kind: 'start', ...sent, version: candidate.version, terms, atMs };
    }
    case 'rollout-advanced': {
      const { atMs, overridden } = event;
      // Whatever was overridden was meant to be: only what it was overridden for, and where it led, is derived again.
      const overHold = overridden.length > 0;
      const to = event.to === 'live' ? 'live' : 'next';
      return { kind: 'promote', ...sent, to, overHold, coSigned: true, atMs };
    }
    case 'rollout-held': {
      // What was added last.
      const added = event.reasons.findLast(({ code }) => code === 'person');
      return added && { kind: 'hold', ...sent, reason: added.text, atMs: event.atMs };
    }
    case 'rollout-resumed': {
      const rollout = state.scopes.get(scope)?.rollout;
      if (rollout === undefined) return undefined;
      const terms = { ...rollout.terms, waivedLeaves: event.waivedLeaves };
      return { kind: 'start', ...sent, version: rollout.candidate.version, terms, atMs: event.atMs };
    }
    case 'rollout-aborted':
      return { kind: 'abort', ...sent, reason: event.reason, atMs: event.atMs };
    case 'rollout-rolled-back':
      return { kind: 'roll-back', ...sent, toVersion: undefined, atMs: event.atMs };
    case 'stage-restarted':
      return undefined;
    default:
      return event satisfies never;
  }
}
