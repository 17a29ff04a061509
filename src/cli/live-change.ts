import type { ControllerEvent } from '../core/control/controller-event.ts';
import {
  type ControllerState,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../core/control/controller-state.ts';

/** What made another version live without a rollout: a rollback, a step of the tuning, a publication that was live at once. */
export interface LiveChange {
  how: 'rolled-back' | 'tuned' | 'published';
  from: number | null;
  to: number;
  /** Null where the log does not say. */
  at: string | null;
  actor: string;
  /** Of a tuned constant. */
  reason: string | null;
}

export interface FoldedLog {
  state: ControllerState;
  /** The last one of the scope, unless a rollout ended since. */
  change: LiveChange | undefined;
}

/** The state that the log adds up to, and how the scope came to what is live, where no rollout brought it. */
export function foldLog(events: readonly ControllerEvent[], scope: string): FoldedLog {
  let state = INITIAL_CONTROLLER_STATE;
  let change: LiveChange | undefined;
  for (const event of events) {
    const before = scopeState(state, scope);
    state = evolve(state, event);
    const after = scopeState(state, scope);
    if (after.ended !== before.ended) change = undefined;
    else if (after.live?.digest !== before.live?.digest)
      change = changeOf(event, before.live?.version ?? null);
  }
  return { state, change };
}

function changeOf(event: ControllerEvent, from: number | null): LiveChange | undefined {
  switch (event.type) {
    case 'policy-rolled-back':
      return { how: 'rolled-back', ...whoAndWhen(event), from, reason: null };
    case 'policy-tuned':
      return { how: 'tuned', ...whoAndWhen(event), from, reason: event.reason };
    case 'policy-published':
      return { how: 'published', ...whoAndWhen({ ...event, atMs: 0 }), from, reason: null };
    default:
      return undefined;
  }
}

function whoAndWhen({
  policy,
  actor,
  atMs,
}: {
  policy: { version: number };
  actor: string;
  atMs: number;
}): Pick<LiveChange, 'to' | 'at' | 'actor'> {
  return { to: policy.version, at: atMs === 0 ? null : new Date(atMs).toISOString(), actor };
}

const WORDS = {
  'rolled-back': 'rolled back',
  tuned: 'tuned',
  published: 'published, and live at once',
} as const;

/** `version 2 rolled back to version 1 at … by ana` */
export function describeChange({ how, from, to, at, actor, reason }: LiveChange): string {
  const when = at === null ? '' : ` at ${at}`;
  const why = reason === null ? '' : `: ${reason}`;
  const what =
    how === 'rolled-back' && from !== null
      ? `version ${from} ${WORDS[how]} to version ${to}`
      : `version ${to}: ${WORDS[how]}`;
  return `${what}${when} by ${actor}${why}`;
}
