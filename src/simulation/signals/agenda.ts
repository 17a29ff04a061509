import { Fifo } from '../../core/fifo.ts';
import { EventHeap } from '../event-heap.ts';

interface Planned {
  readonly dueMs: number;
  readonly sequence: number;
  readonly call: () => void;
}

/**
 * What is to be done, in the order of time, and of planning where that is the same. Most of it is planned for a delay that many others have,
 * too: such a delay's own queue is in order by itself, and takes no heap.
 */
export class Agenda {
  readonly #heap = new EventHeap();
  readonly #byDelay = new Map<number, Fifo<Planned>>();
  readonly #queues: Fifo<Planned>[] = [];
  #sequence = 0;
  nowMs = 0;

  /** At any moment from now on. */
  at(dueMs: number, callback: () => void): void {
    this.#sequence += 1;
    this.#heap.push({ dueMs, sequence: this.#sequence, callback, position: -1 });
  }

  /** After one of a few delays. */
  later(delayMs: number, call: () => void): void {
    this.#sequence += 1;
    let queue = this.#byDelay.get(delayMs);
    if (queue === undefined) {
      queue = new Fifo();
      this.#byDelay.set(delayMs, queue);
      this.#queues.push(queue);
    }
    queue.push({ dueMs: this.nowMs + delayMs, sequence: this.#sequence, call });
  }

  /** Does everything that is due up to then, and leaves the time there. */
  runTo(untilMs: number): void {
    for (;;) {
      const queue = this.#firstQueue();
      const planned = queue?.at(0);
      const event = this.#heap.peek();
      if (planned !== undefined && (event === undefined || isBefore(planned, event))) {
        if (planned.dueMs > untilMs) break;
        queue?.shift();
        this.nowMs = planned.dueMs;
        planned.call();
      } else {
        if (event === undefined || event.dueMs > untilMs) break;
        this.#heap.pop();
        this.nowMs = event.dueMs;
        event.callback();
      }
    }
    this.nowMs = untilMs;
  }

  #firstQueue(): Fifo<Planned> | undefined {
    let first: Planned | undefined;
    let found: Fifo<Planned> | undefined;
    for (const queue of this.#queues) {
      const head = queue.at(0);
      if (head === undefined || (first !== undefined && !isBefore(head, first))) continue;
      first = head;
      found = queue;
    }
    return found;
  }
}

function isBefore(a: { dueMs: number; sequence: number }, b: { dueMs: number; sequence: number }): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
}
