import type { Codecs, Decoded, RecordCodec } from '../../contracts/codec.ts';
import { schemaOf } from '../../contracts/headers.ts';
import type { ControlCommand, ControlEvent } from '../../contracts/records.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import type { ControllerEvent } from '../../core/control/controller-event.ts';
import { inForce, withoutRepeats } from '../../core/control/fence.ts';
import { readControllerEvent } from '../../core/control/read-event.ts';
import { MillraceError } from '../../core/errors.ts';
import { CATALOGUE_SCOPE } from '../../core/model/catalogue.ts';
import type { InboundRecord, MessageBus, OutboundRecord } from '../../ports/message-bus.ts';

export interface ControlLogDeps {
  bus: MessageBus;
  codecs: Codecs;
  topics: TopicNames;
}

/** An event in the log, of a type that this version knows. */
export interface LogEntry {
  term: number;
  /** Of the command that it answers, on the control topic; -1 for none. */
  commandOffset: number;
  event: ControllerEvent;
}

/** An event as the log has it. */
type ReadEntry = Omit<LogEntry, 'event'> & {
  /** Undefined where this version does not know its type. */
  event: ControllerEvent | undefined;
  accepted: boolean;
};

/** A command with the broker's append time, ms since the epoch. */
export interface SentCommand {
  command: ControlCommand;
  appendedMs: number;
}

/** A term that was taken, and the log up to there. */
export interface TakenTerm {
  term: number;
  entries: LogEntry[];
  /** By offset on the control topic. */
  commands: Map<number, SentCommand>;
  /** Of the log: above 0 where it has lost its beginning. */
  firstOffset: number;
  /** The broker's append time of the record that took the term, ms since the epoch. */
  appendedMs: number;
}

/** Both logs that the controller keeps: what was commanded, and what was decided. */
export class ControlLog {
  readonly #deps: ControlLogDeps;

  constructor(deps: ControlLogDeps) {
    this.#deps = deps;
  }

  recordOf(event: ControlEvent): OutboundRecord {
    const codec = this.#deps.codecs.for('ControlEvent');
    return {
      topic: this.#deps.topics.fixed('control-events'),
      partition: 0,
      key: Buffer.from(event.scope),
      value: codec.encode(event),
      headers: codec.headers,
    };
  }

  async append(event: ControlEvent): Promise<void> {
    await this.#deps.bus.produce(this.recordOf(event));
  }

  /**
   * Takes a term above every term in the log, and above `storedTerm`, and answers the log up to there: no event of a leader before can get in between unseen.
   *
   * @param takes the event that takes a term
   * @param storedTerm the highest in the store: more than the log's where that has lost its beginning
   * @throws MillraceError STALE_EPOCH where another controller took the same or a higher term meanwhile; LOG_UNREADABLE where the state cannot be had
   *   of the logs, before a term is taken; the reason of `over` where that came first
   */
  async fence(takes: (term: number) => ControlEvent, over: AbortSignal, storedTerm = 0): Promise<TakenTerm> {
    const tail = await this.#followEvents();
    try {
      const before = await this.#entries(tail.records);
      await this.#readCommands(before);
      const term = before.reduce((highest, entry) => Math.max(highest, entry.term), storedTerm) + 1;
      over.throwIfAborted();
      const own = this.recordOf(takes(term));
      await this.#deps.bus.produce(own);
      const place = await tail.placeOf(own, over);
      const entries = await this.#entries(tail.records.slice(0, place + 1));
      if (entries.slice(0, -1).some((entry) => entry.term >= term)) {
        throw new MillraceError('STALE_EPOCH', `another controller took term ${term} at the same time`);
      }
      const known = inForce(entries).filter(
        (entry): entry is ReadEntry & LogEntry => entry.event !== undefined,
      );
      const firstOffset = tail.records[0]?.offset ?? 0;
      const appendedMs = tail.records[place]?.timestampMs ?? 0;
      const commands = await this.#readCommands(entries);
      return { term, entries: known.slice(0, -1), commands, firstOffset, appendedMs };
    } finally {
      await tail.close();
    }
  }

  /**
   * All commands that can be read, by their offsets, in their order. One that cannot be read is passed over where it was refused for that, or is
   * not decided yet; what was decided of another cannot be known without it.
   */
  async #readCommands(entries: readonly ReadEntry[]): Promise<Map<number, SentCommand>> {
    const { bus, topics, codecs } = this.#deps;
    const topic = topics.fixed('control');
    const records: InboundRecord[] = [];
    const reader = await bus.read({ topics: [topic], startAt: 'earliest' }, (batch) =>
      records.push(...batch),
    );
    await reader.caughtUp;
    await reader.close();
    const accepted = new Set(
      inForce(entries).map((entry) => (entry.accepted ? entry.commandOffset : NO_COMMAND)),
    );
    const commands = new Map<number, SentCommand>();
    const unreadable: Unreadable[] = [];
    const codec = codecs.for('ControlCommand');
    for (const record of records) {
      const decoded = await this.#decode(codec, record);
      const { offset, timestampMs } = record;
      if (decoded.status === 'ok') commands.set(offset, { command: decoded.value, appendedMs: timestampMs });
      else if (accepted.has(offset)) unreadable.push({ offset, reason: reasonOf(decoded) });
    }
    refuseToLead(topic, unreadable);
    return commands;
  }

  /** The log of events, from its first record on and as it grows. */
  async #followEvents() {
    const { bus, topics } = this.#deps;
    const records: InboundRecord[] = [];
    const grown = new Set<() => void>();
    const reader = await bus.read(
      { topics: [topics.fixed('control-events')], startAt: 'earliest' },
      (batch) => {
        records.push(...batch);
        for (const notice of grown) notice();
      },
    );
    await reader.caughtUp;
    const placeOf = (sent: OutboundRecord, over: AbortSignal): Promise<number> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          // The first: a producer that tried again may have appended it twice.
          const place = records.findIndex(({ value }) => value !== null && sent.value?.equals(value));
          if (over.aborted) reject(over.reason);
          else if (place >= 0) resolve(place);
          else return;
          grown.delete(look);
          over.removeEventListener('abort', look);
        };
        grown.add(look);
        over.addEventListener('abort', look);
        look();
      });
    return { records, placeOf, close: () => reader.close() };
  }

  /** Of an event that this version does not know only the term counts. What was not written by a controller at all, it passes over. */
  async #entries(records: readonly InboundRecord[]): Promise<ReadEntry[]> {
    const codec = this.#deps.codecs.for('ControlEvent');
    const events: ControlEvent[] = [];
    const unreadable: Unreadable[] = [];
    for (const record of records) {
      const decoded = await this.#decode(codec, record);
      if (decoded.status === 'ok') events.push(decoded.value);
      else if (!isForeign(decoded)) unreadable.push({ offset: record.offset, reason: reasonOf(decoded) });
    }
    refuseToLead(this.#deps.topics.fixed('control-events'), unreadable);
    return withoutRepeats(events).map(({ term, commandOffset, accepted, evidence }) => ({
      term,
      commandOffset,
      accepted,
      event: readControllerEvent(evidence),
    }));
  }

  async #decode<T>(codec: RecordCodec<T>, { value, headers }: InboundRecord): Promise<Decoded<T>> {
    const decoded = codec.decode(value, schemaOf(headers));
    if (decoded.status !== 'schema-unknown') return decoded;
    await this.#deps.codecs.learn(decoded);
    return codec.decode(value, schemaOf(headers));
  }
}

const NO_COMMAND = -1;

/** A record that one of our controllers wrote, or decided, and that cannot be read now. */
interface Unreadable {
  offset: number;
  reason: string;
}

/** Whether bytes have no frame: whatever becomes of the registry, no controller wrote them. */
function isForeign(decoded: Decoded<unknown>): boolean {
  return decoded.status === 'unreadable' && (decoded.code === 'NO_FRAME' || decoded.code === 'EMPTY_VALUE');
}

function reasonOf(decoded: Decoded<unknown>): string {
  return decoded.status === 'unreadable' ? decoded.message : 'its schema is not known';
}

function refuseToLead(topic: string, unreadable: readonly Unreadable[]): void {
  const [first] = unreadable;
  if (first === undefined) return;
  throw new MillraceError(
    'LOG_UNREADABLE',
    `${topic} has ${unreadable.length} records that this controller cannot read, the first at offset ${first.offset}: ${first.reason}`,
    {
      advice: 'Restore the data of the schema registry; this controller does not lead until it can read them',
    },
  );
}

/** Where pointers may lie in the store, as both logs say. */
export function scopesOf(
  entries: readonly LogEntry[],
  commands: ReadonlyMap<number, SentCommand>,
): Set<string> {
  const decided = entries.map(({ event }) => ('scope' in event ? event.scope : ''));
  const published = [...commands.values()].map(({ command }) =>
    command.type === 'PUBLISH_POLICY' ? command.scope : '',
  );
  const policies = [...decided, ...published].filter((scope) => scope.startsWith('policy/'));
  return new Set([...policies, CATALOGUE_SCOPE]);
}
