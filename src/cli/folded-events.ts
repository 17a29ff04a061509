import type { LoggedEvent } from '../client/control-events.ts';
import { eventDetail, eventReasonCodes } from './shown-event.ts';

/** One line of a history: an event, or several neighbours that say the same. */
export type FoldedEvent =
  | { readonly kind: 'same'; readonly event: LoggedEvent; readonly times: number; readonly firstMs: number }
  /** A hold that came and went by itself. */
  | {
      readonly kind: 'pause';
      readonly held: LoggedEvent;
      readonly resumed: LoggedEvent;
      readonly times: number;
      readonly firstMs: number;
    };

/** Folds a history as it is read, for people: a hold that flaps fills it otherwise. Keeps the newest lines. */
export class EventFold {
  readonly #lines: FoldedEvent[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get lines(): readonly FoldedEvent[] {
    return this.#lines.slice(-this.#max);
  }

  add(event: LoggedEvent): void {
    const last = this.#lines.at(-1);
    if (last?.kind === 'same' && isSame(last.event, event))
      this.#lines.splice(-1, 1, { ...last, event, times: last.times + 1 });
    else if (last?.kind === 'same' && last.times === 1 && endsPause(last.event, event))
      this.#addPause(last.event, event);
    else this.#lines.push({ kind: 'same', event, times: 1, firstMs: event.occurredAt });
    // A hold stands in a line of its own until it ends: the one before must still be there then.
    if (this.#lines.length > this.#max + 1) this.#lines.shift();
  }

  /** The hold is the last line. */
  #addPause(held: LoggedEvent, resumed: LoggedEvent): void {
    const before = this.#lines.at(-2);
    if (before?.kind === 'pause' && isSamePause(before.held, held))
      this.#lines.splice(-2, 2, { ...before, held, resumed, times: before.times + 1 });
    else this.#lines.splice(-1, 1, { kind: 'pause', held, resumed, times: 1, firstMs: held.occurredAt });
  }
}

function isSame(one: LoggedEvent, other: LoggedEvent): boolean {
  return (
    one.type === other.type &&
    one.isVoid === other.isVoid &&
    one.scope === other.scope &&
    one.actor === other.actor &&
    eventDetail(one) === eventDetail(other)
  );
}

/** What a person held, or ended, is never folded with what came about by itself, nor what is void with what counts. */
function endsPause(held: LoggedEvent, next: LoggedEvent): boolean {
  return (
    held.type === 'rollout-held' &&
    next.type === 'rollout-resumed' &&
    held.scope === next.scope &&
    !held.isVoid &&
    !next.isVoid &&
    held.commandId === '' &&
    next.commandId === ''
  );
}

/** Figures alone make no other reason. */
function isSamePause(one: LoggedEvent, other: LoggedEvent): boolean {
  return one.scope === other.scope && eventReasonCodes(one) === eventReasonCodes(other);
}
