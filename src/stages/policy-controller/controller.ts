import type { Codecs, Decoded, RecordCodec } from '../../contracts/codec.ts';
import { type ControlCommand, type ControlEvent, makeControlEvent } from '../../contracts/records.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import {
  type ControllerCommand,
  type ControllerEvent,
  type ControllerState,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  type PublishedPolicy,
  scopeState,
} from '../../core/control/controller-state.ts';
import { readControllerEvent } from '../../core/control/read-event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { InboundRecord, MessageBus, OutboundRecord } from '../../ports/message-bus.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

export interface ControllerConfig {
  /** Name of this controller, the actor of its own events. */
  controller: string;
  /** Commands are accepted without a verified signature. Signatures cannot be verified yet, so without this every command is refused. */
  acceptUnsigned: boolean;
}

export interface ControllerDeps {
  bus: MessageBus;
  store: ControlStore;
  codecs: Codecs;
  topics: TopicNames;
  clock: Clock;
  telemetry: Telemetry;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  /** Reads and validates a policy document; its refusal is the reason in the log. */
  checkPolicy(bytes: Uint8Array): { name: string; version: number };
}

/** The record that brought an event about. */
interface Cause {
  record: InboundRecord;
  commandId: string;
}

/** What earlier leaders wrote into the log of events. */
interface EarlierEvents {
  highestTerm: number;
  /** By the offset of the command that they decide. */
  decisions: ReadonlyMap<number, ControllerEvent>;
}

const STORE_RETRY_MS = 500;

/**
 * The policy controller: whoever owns the control topic's only partition. On taking over it reads both logs from their first
 * record, so its state is what they say and nothing else: a command that was decided means what it was decided to mean, also where this
 * controller, with another fleet or other rules, would refuse it. Then it takes a term above every term that the log of events
 * knows, writes each scope's pointer, and decides commands as they come.
 */
export class Controller {
  readonly #config: ControllerConfig;
  readonly #deps: ControllerDeps;
  #state: ControllerState = INITIAL_CONTROLLER_STATE;
  #documents = new Map<string, Uint8Array>();

  constructor(config: ControllerConfig, deps: ControllerDeps) {
    this.#config = config;
    this.#deps = deps;
  }

  get state(): ControllerState {
    return this.#state;
  }

  /**
   * Rebuilds the state from the logs up to the command at `committedOffset` (exclusive), takes a term, writes the pointers. A leadership that
   * is over meanwhile leaves no trace, or no more than the term that it took.
   */
  async lead(committedOffset: number, over: AbortSignal): Promise<void> {
    const earlier = await this.#earlierEvents();
    const replayed = await this.#replay(committedOffset, earlier.decisions);
    over.throwIfAborted();
    const taken: ControllerEvent = {
      type: 'leadership-taken',
      term: Math.max(replayed.term, earlier.highestTerm) + 1,
    };
    this.#state = evolve(replayed, taken);
    await this.#record(taken, undefined);
    for (const scope of this.#state.scopes.keys()) await this.#writePointer(scope, over);
  }

  /**
   * Decides one command: the events are in the log, and the pointer in the store, before the promise resolves. Where the leadership ends
   * before the store has it, the next leader writes it.
   */
  async handle(record: InboundRecord, command: ControlCommand, over: AbortSignal): Promise<void> {
    for (const event of decide(this.#state, this.#read(command))) {
      over.throwIfAborted();
      await this.#record(event, { record, commandId: command.commandId });
      this.#state = evolve(this.#state, event);
      this.#keepDocument(event, command);
      if (event.type !== 'command-refused' && event.type !== 'leadership-taken')
        await this.#writePointer(event.scope, over);
    }
  }

  /** Writes again what the store lost: an emptied or older store is seeded from what the log said. */
  async reconcile(over: AbortSignal): Promise<void> {
    const { store, telemetry } = this.#deps;
    for (const [scope, { epoch, live }] of this.#state.scopes) {
      if (live === undefined || over.aborted) continue;
      try {
        const stored = await store.readPointer(scope);
        if (stored !== undefined && stored.epoch >= epoch) continue;
        telemetry.logger.warn(
          { scope, epoch, storedEpoch: stored?.epoch },
          'the control store lost the pointer; seeding it again',
        );
        await this.#write(scope, live, epoch);
      } catch (error) {
        telemetry.logger.debug({ scope, error: String(error) }, 'the control store does not answer');
      }
    }
  }

  /** The event for a record on the control topic that cannot be read: it changes nothing, and the log says so. */
  unreadable(record: InboundRecord, reason: string): OutboundRecord {
    const command = { commandId: '', scope: 'control', actor: 'unknown' };
    const event: ControllerEvent = { type: 'command-refused', ...command, reason };
    const built = this.#controlEvent(event, { record, commandId: '' }, this.#deps.clock.wallMs());
    return {
      topic: this.#deps.topics.fixed('control-events'),
      partition: 0,
      key: Buffer.from(built.scope),
      value: this.#deps.codecs.for('ControlEvent').encode(built),
    };
  }

  async #replay(committedOffset: number, decisions: EarlierEvents['decisions']): Promise<ControllerState> {
    const codec = this.#deps.codecs.for('ControlCommand');
    let state = INITIAL_CONTROLLER_STATE;
    this.#documents = new Map();
    for (const record of await this.#readLog('control')) {
      if (record.offset >= committedOffset) break;
      const decoded = await this.#decode(codec, record);
      if (decoded.status !== 'ok') continue;
      const decision = decisions.get(record.offset);
      const events = decision === undefined ? decide(state, this.#read(decoded.value)) : [decision];
      for (const event of events) {
        state = evolve(state, event);
        this.#keepDocument(event, decoded.value);
      }
    }
    return state;
  }

  async #earlierEvents(): Promise<EarlierEvents> {
    const codec = this.#deps.codecs.for('ControlEvent');
    const decisions = new Map<number, ControllerEvent>();
    let highestTerm = 0;
    for (const record of await this.#readLog('control-events')) {
      const decoded = await this.#decode(codec, record);
      if (decoded.status !== 'ok') continue;
      const { term, commandOffset, evidence } = decoded.value;
      // Of two leaders that both decided a command, the later term is right.
      if (term < highestTerm) continue;
      highestTerm = term;
      const event = readControllerEvent(evidence);
      // Without a command's id it tells of a record that could not be worked on.
      if (event === undefined || event.type === 'leadership-taken' || event.commandId === '') continue;
      decisions.set(commandOffset, event);
    }
    return { highestTerm, decisions };
  }

  async #readLog(key: 'control' | 'control-events'): Promise<InboundRecord[]> {
    const { bus, topics } = this.#deps;
    const records: InboundRecord[] = [];
    const reader = await bus.read({ topics: [topics.fixed(key)], startAt: 'earliest' }, (batch) =>
      records.push(...batch),
    );
    await reader.caughtUp;
    await reader.close();
    return records;
  }

  async #decode<T>(codec: RecordCodec<T>, record: InboundRecord): Promise<Decoded<T>> {
    const decoded = codec.decode(record.value);
    if (decoded.status !== 'schema-unknown') return decoded;
    await this.#deps.codecs.learn(decoded.schemaId);
    return codec.decode(record.value);
  }

  #keepDocument(event: ControllerEvent, command: ControlCommand): void {
    if (event.type === 'policy-published') this.#documents.set(event.policy.digest, command.body);
  }

  #read(command: ControlCommand): ControllerCommand {
    const { commandId, scope } = command;
    const actor = command.actor === '' ? 'unknown' : command.actor;
    const refused = (reason: string): ControllerCommand => ({
      kind: 'refused',
      commandId,
      scope,
      actor,
      reason,
    });
    if (commandId === '') return refused('the command has no commandId, by which one sent twice acts once');
    // A signature that nobody checked is worth no more than none.
    if (!this.#config.acceptUnsigned) {
      return refused(
        command.signature === null
          ? 'the command is not signed, and this controller is not configured to accept unsigned commands'
          : 'this version of the controller cannot verify signatures yet, and is not configured to accept commands without; see controller.acceptUnsigned',
      );
    }
    switch (command.type) {
      case 'PUBLISH_POLICY':
        return this.#readPublish(command, actor, refused);
      case 'ROLL_BACK': {
        const text = command.body.toString('utf8').trim();
        if (text !== '' && !/^\d{1,9}$/.test(text))
          return refused(
            `the body of ROLL_BACK is a version number or empty, not ${JSON.stringify(text.slice(0, 40))}`,
          );
        return {
          kind: 'roll-back',
          commandId,
          scope,
          actor,
          toVersion: text === '' ? undefined : Number(text),
        };
      }
      case 'RESEED':
        return { kind: 'reseed', commandId, scope, actor };
      default:
        return refused(
          `commands of type ${command.type} are not supported by this version of the controller; supported: PUBLISH_POLICY, ROLL_BACK, RESEED`,
        );
    }
  }

  #readPublish(
    command: ControlCommand,
    actor: string,
    refused: (reason: string) => ControllerCommand,
  ): ControllerCommand {
    try {
      const { name, version } = this.#deps.checkPolicy(command.body);
      const scope = `policy/${name}`;
      if (command.scope !== scope)
        return refused(
          `the policy is named ${name}, so the command's scope must be ${scope}, not ${command.scope}`,
        );
      return {
        kind: 'publish-policy',
        commandId: command.commandId,
        scope,
        actor,
        policy: { digest: this.#deps.digest(command.body), name, version },
      };
    } catch (error) {
      return refused(error instanceof Error ? error.message : String(error));
    }
  }

  /** Redis may be away: the log already has the decision, so this goes on until the store has it too, or the leadership is over. */
  async #writePointer(scope: string, over: AbortSignal): Promise<void> {
    const { live, epoch } = scopeState(this.#state, scope);
    if (live === undefined) return;
    while (!over.aborted) {
      try {
        await this.#write(scope, live, epoch);
        return;
      } catch (error) {
        this.#deps.telemetry.logger.warn(
          { scope, error: String(error) },
          'the control store does not answer; trying again',
        );
        await new Promise<void>((resolve) => this.#deps.clock.after(STORE_RETRY_MS, resolve));
      }
    }
  }

  async #write(scope: string, live: PublishedPolicy, epoch: number): Promise<void> {
    const { store, telemetry } = this.#deps;
    const bytes = this.#documents.get(live.digest);
    if (bytes !== undefined) await store.putDocument(live.digest, bytes);
    const pointer: PolicyPointer = { epoch, term: this.#state.term, stable: live };
    const written = await store.writePointer(scope, pointer);
    if (written.status === 'applied' || written.current.stable.digest === live.digest) return;
    const what = { scope, epoch, term: this.#state.term, stored: written.current };
    if (written.current.term > this.#state.term)
      telemetry.logger.error(what, 'the store holds a newer pointer: another controller leads');
    // Usually the last decision of the leader before, which did not get to commit the command: it is decided again right after.
    else telemetry.logger.warn(what, 'the store is ahead of the log');
  }

  async #record(event: ControllerEvent, cause: Cause | undefined): Promise<void> {
    const { bus, codecs, topics, clock, telemetry } = this.#deps;
    const built = this.#controlEvent(event, cause, clock.wallMs());
    const { scope, epoch, actor, commandId, reason } = built;
    if (built.accepted)
      telemetry.logger.info({ scope, epoch, actor, commandId, type: event.type }, 'decided');
    else telemetry.logger.warn({ scope, actor, commandId, reason }, 'a command was refused');
    await bus.produce({
      topic: topics.fixed('control-events'),
      partition: 0,
      key: Buffer.from(built.scope),
      value: codecs.for('ControlEvent').encode(built),
    });
  }

  #controlEvent(event: ControllerEvent, cause: Cause | undefined, wallMs: number): ControlEvent {
    const { term } = this.#state;
    const scope = event.type === 'leadership-taken' ? 'controller' : event.scope;
    return makeControlEvent({
      eventId: cause === undefined ? `term-${term}` : `${cause.record.offset}-${event.type}`,
      scope,
      type: event.type,
      term,
      epoch: 'epoch' in event ? event.epoch : scopeState(this.#state, scope).epoch,
      actor: event.type === 'leadership-taken' ? this.#config.controller : event.actor,
      commandId: cause?.commandId,
      commandDigest: cause?.record.value == null ? undefined : this.#deps.digest(cause.record.value),
      commandOffset: cause?.record.offset,
      accepted: event.type !== 'command-refused',
      reason: event.type === 'command-refused' ? event.reason : null,
      evidence: JSON.stringify(event),
      occurredAt: Math.round(wallMs),
    });
  }
}
