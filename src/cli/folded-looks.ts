import type { LoggedEvent } from '../client/control-events.ts';

/** Looks that say nothing new, as one: they come every few seconds, and hide what was decided. */
export interface FoldedLooks {
  readonly last: LoggedEvent;
  readonly times: number;
  readonly firstMs: number;
}

const LOOKS_PER_LINE = 30;

/** Folds looks as they come: the first after a decision stands alone, the ones after it are told together, at the latest after 30. */
export class LookFold {
  readonly #runs = new Map<string, FoldedLooks>();

  /** What is to be told now, in order. */
  add(event: LoggedEvent): FoldedLooks[] {
    const alone = { last: event, times: 1, firstMs: event.occurredAt };
    if (!event.type.endsWith('-looked')) return [...this.rest(), alone];
    const key = `${event.type} ${event.scope} ${event.isVoid}`;
    const run = this.#runs.get(key);
    if (run === undefined) {
      this.#runs.set(key, { ...alone, times: 0 });
      return [alone];
    }
    const longer = {
      last: event,
      times: run.times + 1,
      firstMs: run.times === 0 ? event.occurredAt : run.firstMs,
    };
    const isFull = longer.times === LOOKS_PER_LINE;
    this.#runs.set(key, isFull ? { ...longer, times: 0 } : longer);
    return isFull ? [longer] : [];
  }

  /** What was held back; the next look stands alone again. */
  rest(): FoldedLooks[] {
    const held = [...this.#runs.values()].filter(({ times }) => times > 0);
    this.#runs.clear();
    return held;
  }
}
