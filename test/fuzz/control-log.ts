import { isSameJson } from '../../src/core/control/same-json.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../src/ports/control-store.ts';
import type { InboundRecord, MessageBus, OutboundRecord } from '../../src/ports/message-bus.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';

const NOTHING = (): void => undefined;
const unused = (): never => {
  throw new Error('the controller has no use for this');
};

/** A clock that stands still between inputs; whoever waits for a time is called at once. */
export function handClock(nowMs: number): Clock & { nowMs: number; skewMs: number } {
  return {
    nowMs,
    /** Of the wall clock. */
    skewMs: 0,
    wallMs() {
      return this.nowMs + this.skewMs;
    },
    monotonicMs() {
      return this.nowMs;
    },
    after(_delayMs, callback) {
      queueMicrotask(callback);
      return NOTHING;
    },
    every: () => NOTHING,
  };
}

export const mute: Telemetry = {
  logger: { debug: NOTHING, info: NOTHING, warn: NOTHING, error: NOTHING, child: () => mute.logger },
  counter: () => ({ add: NOTHING }),
  gauge: () => ({ set: NOTHING }),
  histogram: () => ({ observe: NOTHING }),
};

/** The topics of one installation, as plain lists: a record is stored when `produce` resolves, and readers have it by then. */
export function listBus(clock: Clock): MessageBus & { of(topic: string): readonly InboundRecord[] } {
  const topics = new Map<string, InboundRecord[]>();
  const readers = new Map<string, Set<(records: readonly InboundRecord[]) => void>>();
  const of = (topic: string): InboundRecord[] => {
    const known = topics.get(topic) ?? [];
    topics.set(topic, known);
    return known;
  };
  return {
    of,
    async produce({ topic, partition, key, value, headers = {} }: OutboundRecord) {
      const records = of(topic);
      const record = {
        topic,
        partition,
        key,
        value,
        headers,
        offset: records.length,
        timestampMs: Math.round(clock.wallMs()),
        assignment: 1,
      };
      records.push(record);
      for (const onRecords of readers.get(topic) ?? []) onRecords([record]);
    },
    async read({ topics: [topic = ''] }, onRecords) {
      onRecords(of(topic));
      const known = readers.get(topic) ?? new Set();
      readers.set(topic, known.add(onRecords));
      return {
        caughtUp: Promise.resolve(),
        pause: unused,
        resume: unused,
        async close() {
          known.delete(onRecords);
        },
      };
    },
    partitionCount: unused,
    subscribe: unused,
    get admin(): never {
      return unused();
    },
    close: unused,
  };
}

type ControllerStore = Pick<
  ControlStore,
  | 'readPointer'
  | 'writePointer'
  | 'hasDocument'
  | 'putDocument'
  | 'putEnvelope'
  | 'readEnvelope'
  | 'putRevocations'
  | 'readRevocations'
>;

/** A store that keeps its promises, and is away for so many calls. */
export class ListStore implements ControllerStore {
  readonly pointers = new Map<string, PolicyPointer>();
  readonly documents = new Map<string, Uint8Array>();
  readonly #envelopes = new Map<string, Uint8Array>();
  #revocations: Uint8Array | undefined;
  away = 0;
  /** What a write did that the port forbids. */
  broken: string | undefined;

  async readPointer(scope: string): Promise<PolicyPointer | undefined> {
    this.#answer();
    return this.pointers.get(scope);
  }

  async writePointer(scope: string, pointer: PolicyPointer): ReturnType<ControlStore['writePointer']> {
    this.#answer();
    const current = this.pointers.get(scope);
    const isNewer = current === undefined || (pointer.epoch > current.epoch && pointer.term >= current.term);
    if (!isNewer && !goesOn(current, pointer)) return { status: 'stale', current };
    for (const { digest } of [
      pointer.stable,
      ...(pointer.canary === undefined ? [] : [pointer.canary.policy]),
    ]) {
      if (!this.documents.has(digest))
        this.broken = `the pointer of ${scope} names ${digest}, which is not stored`;
    }
    this.pointers.set(scope, pointer);
    return { status: 'applied' };
  }

  async putDocument(digest: string, bytes: Uint8Array): Promise<void> {
    this.#answer();
    this.documents.set(digest, bytes);
  }

  async hasDocument(digest: string): Promise<boolean> {
    this.#answer();
    return this.documents.has(digest);
  }

  async putEnvelope(digest: string, bytes: Uint8Array): Promise<void> {
    this.#answer();
    this.#envelopes.set(digest, bytes);
  }

  async readEnvelope(digest: string): Promise<Uint8Array | undefined> {
    this.#answer();
    return this.#envelopes.get(digest);
  }

  async putRevocations(bytes: Uint8Array): Promise<void> {
    this.#answer();
    this.#revocations = bytes;
  }

  async readRevocations(): Promise<Uint8Array | undefined> {
    this.#answer();
    return this.#revocations;
  }

  #answer(): void {
    if (this.away === 0) return;
    this.away -= 1;
    throw new MillraceError('STORE_UNAVAILABLE', 'the store is away');
  }
}

/** It means the same, and is a later leader's, or the same leader renews the canary. */
function goesOn(current: PolicyPointer, next: PolicyPointer): boolean {
  const renews = (next.canary?.beat ?? 0) > (current.canary?.beat ?? 0);
  if (next.term < current.term || (next.term === current.term && !renews)) return false;
  return isSameJson(meaningOf(current), meaningOf(next));
}

function meaningOf({ term: _, canary, ...rest }: PolicyPointer): object {
  return { ...rest, canary: canary && { ...canary, beat: 0 } };
}
