/** A call due at a virtual time. `position` is its place in the heap, -1 once it has left. */
export interface ScheduledEvent {
  readonly dueMs: number;
  readonly sequence: number;
  readonly callback: () => void;
  position: number;
}

/** Binary heap of events by due time; events due at the same time keep the order in which they were scheduled. */
export class EventHeap {
  readonly #events: ScheduledEvent[] = [];

  get size(): number {
    return this.#events.length;
  }

  peek(): ScheduledEvent | undefined {
    return this.#events[0];
  }

  push(event: ScheduledEvent): void {
    this.#events.push(event);
    this.#rise(event, this.#events.length - 1);
  }

  /** Takes out the earliest event. */
  pop(): ScheduledEvent | undefined {
    const first = this.#events[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Takes an event out wherever it stands; does nothing where it has left already. O(log n). */
  remove(event: ScheduledEvent): void {
    const position = event.position;
    if (position < 0) return;
    event.position = -1;
    const last = this.#events.pop();
    if (last === undefined || last === event) return;
    this.#sink(last, position);
    this.#rise(last, last.position);
  }

  #rise(event: ScheduledEvent, position: number): void {
    while (position > 0) {
      const parentPosition = (position - 1) >> 1;
      const parent = this.#events[parentPosition];
      if (parent === undefined || !isBefore(event, parent)) break;
      this.#place(parent, position);
      position = parentPosition;
    }
    this.#place(event, position);
  }

  #sink(event: ScheduledEvent, position: number): void {
    for (;;) {
      const left = this.#events[2 * position + 1];
      const right = this.#events[2 * position + 2];
      const child = right !== undefined && left !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, event)) break;
      const childPosition = child.position;
      this.#place(child, position);
      position = childPosition;
    }
    this.#place(event, position);
  }

  #place(event: ScheduledEvent, position: number): void {
    this.#events[position] = event;
    event.position = position;
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
}
