import { GrowingMap } from '../growing-map.ts';
import { CATALOGUE_SCOPE, type Publication } from '../model/catalogue.ts';
import { isSameVersion, versionName } from '../model/published-model.ts';
import { conclude as concludeRollout } from '../rollout/conclude.ts';
import { decideRollout } from '../rollout/decide-rollout.ts';
import { ended, evolveRollout, liveChanged } from '../rollout/evolve-rollout.ts';
import { AUTOMATIC } from '../rollout/rollout-event.ts';
import {
  goneBack,
  goneLive,
  NO_SCOPE,
  previousOf,
  type ScopeState,
  stageOf,
} from '../rollout/rollout-state.ts';
import { evolveTuning } from '../tuning/evolve-tuning.ts';
import type { CommandKind, ControllerCommand, ControllerInput } from './controller-command.ts';
import type { ControllerEvent } from './controller-event.ts';
import { catalogueEpoch, withModel } from './published-models.ts';
import { listVersions, type PublishedPolicy } from './published-policy.ts';

/**
 * The controller as decide and evolve on plain data (after Chassaing's decider pattern): the state is a fold of events, an event is what a
 * command was decided to mean, and the same log always gives the same state.
 */
export interface ControllerState {
  /** Leadership under which decisions are made. */
  readonly term: number;
  readonly scopes: ReadonlyMap<string, ScopeState>;
  /** Model versions published, in the order of their first publication. */
  readonly models: readonly Publication[];
  /** How often a model version was published, one that was published again included. */
  readonly publications: number;
  /** What reseeding added to the epoch of the catalogue. */
  readonly catalogueReseeded: number;
  /** Commands already decided, by id: a command sent twice acts once. */
  readonly decided: GrowingMap<string, true>;
  /** The latest time in the log, ms since the epoch: log time goes on from there, whatever a wall clock says. */
  readonly lastMs: number;
}

export const INITIAL_CONTROLLER_STATE: ControllerState = {
  term: 0,
  scopes: new Map(),
  models: [],
  publications: 0,
  catalogueReseeded: 0,
  decided: GrowingMap.of([]),
  lastMs: 0,
};

export function scopeState(state: ControllerState, scope: string): ScopeState {
  return state.scopes.get(scope) ?? NO_SCOPE;
}

/**
 * What the command or look means now: its event, and then what follows from that by itself. Every command gives at least one event, a repeated one
 * none; without an id none is a repetition. A look that is not newer than the last gives none.
 */
export function decide(state: ControllerState, input: ControllerInput): readonly ControllerEvent[] {
  const first = decideInput(state, input);
  return first === undefined ? [] : [first, ...conclude(evolve(state, first), input.scope)];
}

/** Far more than any rules can have follow from one event: a mistake in them must not hang the controller. */
const CONSEQUENCES_MAX = 16;

/**
 * What follows from the state of a scope by itself. Nothing, right after `decide`; a new leader asks because the one before may have died between
 * an event and its consequence.
 */
export function conclude(state: ControllerState, scope: string): readonly ControllerEvent[] {
  const events: ControllerEvent[] = [];
  let event = concludeRollout(scope, scopeState(state, scope));
  while (event !== undefined) {
    events.push(event);
    if (events.length > CONSEQUENCES_MAX)
      throw new RangeError(`the rules never come to rest in ${scope}: ${events.map(({ type }) => type)}`);
    state = evolve(state, event);
    event = concludeRollout(scope, scopeState(state, scope));
  }
  return events;
}

export function evolve(state: ControllerState, event: ControllerEvent): ControllerState {
  switch (event.type) {
    case 'leadership-taken':
      return { ...state, term: Math.max(state.term, event.term) };
    case 'command-refused':
    case 'key-revoked':
      return withDecided(state, event.commandId);
    case 'model-published': {
      const publications = state.publications + 1;
      return {
        ...withDecided(state, event.commandId),
        models: withModel(state.models, event.model, publications),
        publications,
      };
    }
    case 'store-reseeded':
      if (event.scope === CATALOGUE_SCOPE) return catalogueReseeded(state, event.epoch, event.commandId);
      return inScope(state, event);
    default:
      return inScope(state, event);
  }
}

function inScope(state: ControllerState, event: ScopeEvent): ControllerState {
  const scopes = new Map(state.scopes).set(event.scope, evolveScope(scopeState(state, event.scope), event));
  const lastMs = Math.max(state.lastMs, timeOf(event));
  return { ...withDecided(state, event.commandId), scopes, lastMs };
}

function catalogueReseeded(state: ControllerState, epoch: number, commandId: string): ControllerState {
  const added = Math.max(0, epoch - catalogueEpoch(state));
  return { ...withDecided(state, commandId), catalogueReseeded: state.catalogueReseeded + added };
}

type ScopeEvent = Exclude<
  ControllerEvent,
  { type: 'leadership-taken' | 'command-refused' | 'key-revoked' | 'model-published' }
>;

function evolveScope(scope: ScopeState, event: ScopeEvent): ScopeState {
  switch (event.type) {
    case 'policy-published':
      return published(scope, event);
    case 'policy-rolled-back': {
      const { policy, atMs, epoch } = event;
      const reason = `rolled back to version ${policy.version}`;
      const { rollout } = scope;
      const alone = rollout === undefined ? scope : ended(scope, rollout, 'rolled-back', { reason, atMs });
      return goneBack(alone, policy, epoch);
    }
    case 'store-reseeded':
      return { ...scope, epoch: event.epoch };
    case 'policy-tuned':
      return madeLive(liveChanged(scope, event.atMs), event.policy, event.epoch);
    case 'tuning-looked':
    case 'tuning-stepped':
    case 'tuning-backed-off':
      return { ...scope, tuning: evolveTuning(scope.tuning, event) };
    default:
      return evolveRollout(scope, event);
  }
}

function published(
  scope: ScopeState,
  { policy, live, start, epoch }: Extract<ControllerEvent, { type: 'policy-published' }>,
): ScopeState {
  if (live) return madeLive(scope, policy, epoch);
  return { ...scope, published: withPolicy(scope, policy), toStart: start && { policy, ...start }, epoch };
}

function madeLive(scope: ScopeState, policy: PublishedPolicy, epoch: number): ScopeState {
  return goneLive({ ...scope, published: withPolicy(scope, policy) }, policy, epoch);
}

function withPolicy({ published: known }: ScopeState, policy: PublishedPolicy): readonly PublishedPolicy[] {
  return known.some(({ version }) => version === policy.version) ? known : [...known, policy];
}

/** The latest time that an event tells, ms; 0 where it tells none. */
function timeOf(event: ScopeEvent): number {
  if (event.type === 'rollout-looked' || event.type === 'tuning-looked') return event.observation.atMs;
  if (event.type === 'policy-published') return event.start?.atMs ?? 0;
  return 'atMs' in event ? event.atMs : 0;
}

function withDecided(state: ControllerState, commandId: string): ControllerState {
  if (commandId === '' || state.decided.has(commandId)) return state;
  return { ...state, decided: state.decided.with(commandId, true) };
}

function decideInput(state: ControllerState, input: ControllerInput): ControllerEvent | undefined {
  const scope = scopeState(state, input.scope);
  if (input.kind === 'look') {
    const decision = decideRollout(input.scope, scope, input);
    if (typeof decision === 'string' || !('happening' in decision)) return undefined;
    return { ...decision.happening, commandId: '', scope: input.scope, actor: AUTOMATIC };
  }
  if (input.commandId !== '' && state.decided.has(input.commandId)) return undefined;
  if (input.kind === 'publish-model') return decidePublishModel(state, input);
  return input.kind === 'reseed' ? decideReseed(state, input) : decideCommand(scope, input);
}

/** The files of a version never change: what was checked under its name is what serves under it. */
function decidePublishModel(state: ControllerState, command: CommandKind<'publish-model'>): ControllerEvent {
  const { model } = command;
  const same = state.models.find((known) => isSameVersion(known.model, model))?.model;
  if (same !== undefined && same.digest !== model.digest) {
    return refuse(
      command,
      `${versionName(model)} is already published with another digest, ${same.digest}; give the new files a higher version`,
    );
  }
  return { type: 'model-published', ...causeOf(command), model, epoch: catalogueEpoch(state) + 1 };
}

function decideReseed(state: ControllerState, command: CommandKind<'reseed'>): ControllerEvent {
  const { scope, above = 0 } = command;
  const isCatalogue = scope === CATALOGUE_SCOPE;
  const { live, epoch: own } = scopeState(state, scope);
  if (isCatalogue ? state.models.length === 0 : live === undefined)
    return refuse(command, `nothing was ever published in ${scope}`);
  const epoch = Math.max(isCatalogue ? catalogueEpoch(state) : own, above) + 1;
  return { type: 'store-reseeded', ...causeOf(command), epoch };
}

type ScopeCommand = Exclude<ControllerCommand, { kind: 'publish-model' | 'reseed' }>;

function decideCommand(scope: ScopeState, command: ScopeCommand): ControllerEvent {
  switch (command.kind) {
    case 'refused':
      return refuse(command, command.reason);
    case 'publish-policy':
      return decidePublish(scope, command);
    case 'roll-back':
      return decideRollBack(scope, command);
    case 'tune':
      return decideTune(scope, command);
    case 'revoke-key':
      return { type: 'key-revoked', ...causeOf(command), keyId: command.keyId };
    default: {
      const decision = decideRollout(command.scope, scope, command);
      if (typeof decision === 'string') return refuse(command, 'it changes nothing');
      return 'refused' in decision
        ? refuse(command, decision.refused)
        : { ...decision.happening, ...causeOf(command) };
    }
  }
}

/** The first version of a scope is live at once in any mode: there is nothing that it could harm or be compared with. */
function decidePublish(scope: ScopeState, command: CommandKind<'publish-policy'>): ControllerEvent {
  const { policy, mode, start } = command;
  const same = scope.published.find(({ version }) => version === policy.version);
  if (same !== undefined && same.digest !== policy.digest) {
    return refuse(
      command,
      `version ${policy.version} of ${policy.name} is already published with another digest; give the new text a higher version`,
    );
  }
  const newest = scope.published.reduce((highest, { version }) => Math.max(highest, version), 0);
  // The live text once more changes nothing but who vouches for it, whatever was published since.
  if (policy.version < newest && scope.live?.digest !== policy.digest) {
    return refuse(
      command,
      `version ${policy.version} is older than version ${newest}, which was published; roll back to it, or give the text a higher version`,
    );
  }
  const { rollout } = scope;
  const inForce = [scope.live?.digest, rollout?.candidate.digest];
  if (rollout !== undefined && mode === 'immediate' && !inForce.includes(policy.digest)) {
    return refuse(
      command,
      `version ${rollout.candidate.version} is being rolled out, and a published version would be live at once; ABORT the rollout, or wait until it has ended, and publish again`,
    );
  }
  const runs = rollout !== undefined;
  const live = scope.live === undefined || (mode === 'immediate' && !runs);
  const isNew = scope.live?.version !== policy.version;
  return {
    type: 'policy-published',
    ...causeOf(command),
    policy,
    live,
    start: live || runs || !isNew ? undefined : start,
    epoch: live ? scope.epoch + 1 : scope.epoch,
  };
}

function decideTune(scope: ScopeState, command: CommandKind<'tune'>): ControllerEvent {
  const { name, value, child, atMs } = command;
  const { rollout } = scope;
  if (rollout !== undefined && stageOf(rollout).name !== 'shadow') {
    return refuse(
      command,
      `version ${rollout.candidate.version} is compared with the live one, which must not change meanwhile; wait, or abort the rollout`,
    );
  }
  const reason = `${name} is ${value} from now on`;
  const { policy, text } = child;
  return {
    type: 'policy-tuned',
    ...causeOf(command),
    policy,
    text,
    name,
    value,
    reason,
    atMs,
    epoch: scope.epoch + 1,
  };
}

function decideRollBack(scope: ScopeState, command: CommandKind<'roll-back'>): ControllerEvent {
  const { toVersion, atMs } = command;
  const { live, rollout } = scope;
  if (live === undefined) return refuse(command, `nothing was ever published in ${command.scope}`);
  const epoch = scope.epoch + 1;
  if (rollout !== undefined && (toVersion === undefined || toVersion === live.version)) {
    const reason = `version ${live.version} stays live`;
    return { type: 'rollout-rolled-back', ...causeOf(command), reason, atMs, epoch };
  }
  const policy =
    toVersion === undefined
      ? previousOf(scope)
      : scope.published.find(({ version }) => version === toVersion);
  if (policy === undefined) {
    return refuse(
      command,
      `there is no ${toVersion === undefined ? 'earlier version' : `version ${toVersion}`} to go back to; published: ${listVersions(scope.published)}`,
    );
  }
  if (!scope.wentLive.includes(policy.version)) {
    return refuse(
      command,
      `version ${policy.version} was never live, so that there is no way back to it; START rolls it out`,
    );
  }
  return { type: 'policy-rolled-back', ...causeOf(command), from: live, policy, atMs, epoch };
}

function causeOf({ commandId, scope, actor }: ControllerCommand): {
  commandId: string;
  scope: string;
  actor: string;
} {
  return { commandId, scope, actor };
}

function refuse(command: ControllerCommand, reason: string): ControllerEvent {
  return { type: 'command-refused', ...causeOf(command), reason };
}
