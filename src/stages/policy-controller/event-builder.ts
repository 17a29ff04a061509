import { type ControlCommand, type ControlEvent, makeControlEvent } from '../../contracts/records.ts';
import type { ControllerEvent } from '../../core/control/controller-event.ts';
import {
  type ControllerState,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../core/control/controller-state.ts';
import type { Clock } from '../../ports/clock.ts';
import type { InboundRecord } from '../../ports/message-bus.ts';

/** The record that brought events about. */
export interface Cause {
  record: InboundRecord;
  commandId: string;
  /** Undefined for what could not be read. */
  command?: ControlCommand;
}

export interface EventBuilderDeps {
  clock: Pick<Clock, 'wallMs'>;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
}

/** Events of the controller as the log of events has them: with who, when and what brought them about. */
export class EventBuilder {
  readonly #controller: string;
  readonly #deps: EventBuilderDeps;
  /** Events of this term that answer no command. */
  #unasked = 0;

  /** @param controller its name: the actor of its own events */
  constructor(controller: string, deps: EventBuilderDeps) {
    this.#controller = controller;
    this.#deps = deps;
  }

  /** Another term begins. */
  begin(): void {
    this.#unasked = 0;
  }

  taken(term: number): ControlEvent {
    const event = { type: 'leadership-taken', term } as const;
    return this.#build(event, undefined, INITIAL_CONTROLLER_STATE, `term-${term}`);
  }

  /** @param state before the event */
  build(event: ControllerEvent, cause: Cause | undefined, state: ControllerState): ControlEvent {
    return this.#build(event, cause, state, this.#eventId(event, cause, state.term));
  }

  #build(
    event: ControllerEvent,
    cause: Cause | undefined,
    state: ControllerState,
    eventId: string,
  ): ControlEvent {
    const { record, commandId } = cause ?? {};
    const isLeadership = event.type === 'leadership-taken';
    return makeControlEvent({
      eventId,
      scope: isLeadership ? 'controller' : event.scope,
      type: event.type,
      term: isLeadership ? event.term : state.term,
      epoch: epochOf(event, state),
      actor: isLeadership ? this.#controller : event.actor,
      commandId,
      commandDigest: record?.value == null ? undefined : this.#deps.digest(record.value),
      commandOffset: record?.offset,
      accepted: event.type !== 'command-refused',
      reason: event.type === 'command-refused' ? event.reason : null,
      evidence: JSON.stringify(event),
      // For people: nothing is decided by it.
      occurredAt: Math.round(this.#deps.clock.wallMs()),
    });
  }

  /** A command has one answer; what follows from it, or was left undone before it, may be of the same type. */
  #eventId(event: ControllerEvent, cause: Cause | undefined, term: number): string {
    const answers = event.type === 'command-refused' || ('commandId' in event && event.commandId !== '');
    if (cause !== undefined && answers) return `${cause.record.offset}-${event.type}`;
    this.#unasked += 1;
    return `term-${term}-${this.#unasked}`;
  }
}

/** Epoch of the pointer after the event. */
export function epochOf(event: ControllerEvent, state: ControllerState): number {
  if ('epoch' in event) return event.epoch;
  return 'scope' in event ? scopeState(state, event.scope).epoch : 0;
}
