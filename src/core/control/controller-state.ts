/**
 * The controller as decide and evolve on plain data (after Chassaing's decider pattern): the state is a fold of events, an event is what a
 * command was decided to mean, and the same log always gives the same state.
 */

export interface PublishedPolicy {
  digest: string;
  name: string;
  version: number;
}

export interface ScopeState {
  /** Versions published, oldest first. */
  published: readonly PublishedPolicy[];
  live: PublishedPolicy | undefined;
  epoch: number;
}

export interface ControllerState {
  /** Leadership under which decisions are made. */
  term: number;
  scopes: ReadonlyMap<string, ScopeState>;
  /** Commands already decided, by id: a command sent twice acts once. */
  decided: ReadonlySet<string>;
}

export const INITIAL_CONTROLLER_STATE: ControllerState = { term: 0, scopes: new Map(), decided: new Set() };

/** What a command asks for, after its body was read and checked. */
export type ControllerCommand =
  | { kind: 'publish-policy'; commandId: string; scope: string; actor: string; policy: PublishedPolicy }
  | { kind: 'roll-back'; commandId: string; scope: string; actor: string; toVersion: number | undefined }
  | { kind: 'reseed'; commandId: string; scope: string; actor: string }
  /** The border could not accept it: the reason goes into the log. */
  | { kind: 'refused'; commandId: string; scope: string; actor: string; reason: string };

export type ControllerEvent =
  | { type: 'leadership-taken'; term: number }
  | {
      type: 'policy-published';
      commandId: string;
      scope: string;
      actor: string;
      policy: PublishedPolicy;
      epoch: number;
    }
  | {
      type: 'policy-rolled-back';
      commandId: string;
      scope: string;
      actor: string;
      from: PublishedPolicy;
      policy: PublishedPolicy;
      epoch: number;
    }
  | { type: 'store-reseeded'; commandId: string; scope: string; actor: string; epoch: number }
  | { type: 'command-refused'; commandId: string; scope: string; actor: string; reason: string };

const NO_SCOPE: ScopeState = { published: [], live: undefined, epoch: 0 };

export function scopeState(state: ControllerState, scope: string): ScopeState {
  return state.scopes.get(scope) ?? NO_SCOPE;
}

/** What the command means now. Every command gives at least one event, a repeated one none; without an id none is a repetition. */
export function decide(state: ControllerState, command: ControllerCommand): readonly ControllerEvent[] {
  if (command.commandId !== '' && state.decided.has(command.commandId)) return [];
  const scope = scopeState(state, command.scope);
  switch (command.kind) {
    case 'refused':
      return [refuse(command, command.reason)];
    case 'publish-policy':
      return [decidePublish(scope, command)];
    case 'roll-back':
      return [decideRollBack(scope, command)];
    case 'reseed': {
      if (scope.live === undefined)
        return [refuse(command, `nothing was ever published in ${command.scope}`)];
      const { commandId, actor } = command;
      return [{ type: 'store-reseeded', commandId, scope: command.scope, actor, epoch: scope.epoch + 1 }];
    }
    default:
      return command satisfies never;
  }
}

export function evolve(state: ControllerState, event: ControllerEvent): ControllerState {
  switch (event.type) {
    case 'leadership-taken':
      return { ...state, term: Math.max(state.term, event.term) };
    case 'command-refused':
      return { ...state, decided: new Set(state.decided).add(event.commandId) };
    case 'policy-published': {
      const scope = scopeState(state, event.scope);
      return withScope(state, event, {
        published: [...scope.published, event.policy],
        live: event.policy,
        epoch: event.epoch,
      });
    }
    case 'policy-rolled-back':
      return withScope(state, event, {
        ...scopeState(state, event.scope),
        live: event.policy,
        epoch: event.epoch,
      });
    case 'store-reseeded':
      return withScope(state, event, { ...scopeState(state, event.scope), epoch: event.epoch });
    default:
      return event satisfies never;
  }
}

function decidePublish(
  scope: ScopeState,
  command: Extract<ControllerCommand, { kind: 'publish-policy' }>,
): ControllerEvent {
  const { commandId, actor, policy } = command;
  const same = scope.published.find((published) => published.version === policy.version);
  if (same !== undefined && same.digest !== policy.digest) {
    return refuse(
      command,
      `version ${policy.version} of ${policy.name} is already published with another digest; give the new text a higher version`,
    );
  }
  const newest = scope.published.reduce((highest, published) => Math.max(highest, published.version), 0);
  if (policy.version < newest) {
    return refuse(
      command,
      `version ${policy.version} is older than version ${newest}, which was published; roll back to it, or give the text a higher version`,
    );
  }
  return { type: 'policy-published', commandId, scope: command.scope, actor, policy, epoch: scope.epoch + 1 };
}

function decideRollBack(
  scope: ScopeState,
  command: Extract<ControllerCommand, { kind: 'roll-back' }>,
): ControllerEvent {
  const { commandId, actor, toVersion } = command;
  const { live } = scope;
  if (live === undefined) return refuse(command, `nothing was ever published in ${command.scope}`);
  const target =
    toVersion === undefined
      ? previous(scope.published, live)
      : scope.published.find((policy) => policy.version === toVersion);
  if (target === undefined) {
    const known = scope.published.map((policy) => policy.version).join(', ');
    return refuse(
      command,
      `there is no ${toVersion === undefined ? 'earlier version' : `version ${toVersion}`} to go back to; published: ${known}`,
    );
  }
  return {
    type: 'policy-rolled-back',
    commandId,
    scope: command.scope,
    actor,
    from: live,
    policy: target,
    epoch: scope.epoch + 1,
  };
}

/** The version published before the live one. */
function previous(published: readonly PublishedPolicy[], live: PublishedPolicy): PublishedPolicy | undefined {
  return published.filter((policy) => policy.version < live.version).at(-1);
}

function refuse(command: ControllerCommand, reason: string): ControllerEvent {
  return {
    type: 'command-refused',
    commandId: command.commandId,
    scope: command.scope,
    actor: command.actor,
    reason,
  };
}

function withScope(
  state: ControllerState,
  event: { scope: string; commandId: string },
  scope: ScopeState,
): ControllerState {
  return {
    ...state,
    scopes: new Map(state.scopes).set(event.scope, scope),
    decided: new Set(state.decided).add(event.commandId),
  };
}
