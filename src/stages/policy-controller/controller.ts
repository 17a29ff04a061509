import type { Codecs } from '../../contracts/codec.ts';
import type { ControlCommand, ControlEvent } from '../../contracts/records.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import type { ControllerCommand, ControllerInput } from '../../core/control/controller-command.ts';
import type { ControllerEvent } from '../../core/control/controller-event.ts';
import {
  type ControllerState,
  conclude,
  decide,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../core/control/controller-state.ts';
import { CATALOGUE_SCOPE } from '../../core/model/catalogue.ts';
import { AUTOMATIC } from '../../core/rollout/rollout-event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import type { InboundRecord, MessageBus, OutboundRecord } from '../../ports/message-bus.ts';
import type { Signer } from '../../ports/signatures.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { CataloguePointer } from './catalogue-pointer.ts';
import { ControlLog, type LogEntry, type SentCommand, scopesOf } from './control-log.ts';
import type { ControllerConfig } from './controller-config.ts';
import { type Cause, EventBuilder, epochOf } from './event-builder.ts';
import type { FleetVersions } from './fleet-versions.ts';
import { LogTime } from './log-time.ts';
import { lookOf } from './look.ts';
import type { MetricPoller } from './metric-poller.ts';
import { ModelProofs, modelProof } from './model-proofs.ts';
import { type Ahead, PointerWriter } from './pointer-writer.ts';
import { PolicyProofs, type ProvenBy } from './policy-proofs.ts';
import { PolicyTexts } from './policy-texts.ts';
import { type CheckedPolicy, CommandReader } from './read-command.ts';
import type { RolloutObserver } from './rollout-observer.ts';
import { SignatureGate, type TrustedKeys } from './signature-gate.ts';
import { tune } from './tune.ts';
import type { Tuner } from './tuner.ts';

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
  checkPolicy(bytes: Uint8Array): CheckedPolicy;
  /** Checks signatures; without it there is no key that could sign. */
  signatures?: TrustedKeys;
  /** The controller's own key, by which routers know the policies that it makes by tuning. */
  signer?: Signer;
  /** Sees what rollouts do to the traffic. Without one nothing is seen, and a rollout is held for it. */
  observer?: Pick<RolloutObserver, 'observe'>;
  /** Knows which workers can run which model versions; without it a policy may name any. */
  fleetVersions?: Pick<FleetVersions, 'hasHeard' | 'heard' | 'notReady'>;
  /** Polls the queries of the guardrails of policies; without one, a policy that has any is refused. */
  metrics?: Pick<MetricPoller, 'take'>;
  /** Sees what the tuning of policies is decided by; without one nothing is tuned. */
  tuner?: Pick<Tuner, 'follow' | 'observe'>;
}

/**
 * The policy controller: whoever owns the control topic's only partition. On taking over it takes a term above every term that the log of events
 * knows, and folds the log up to there, so its state is what the log says and nothing else: a command that was decided means what it was decided to
 * mean, also where this controller, with another fleet or other rules, would refuse it. Then it writes each scope's pointer, and decides commands and
 * looks as they come, one after another.
 */
export class Controller {
  readonly #config: ControllerConfig;
  readonly #deps: ControllerDeps;
  readonly #log: ControlLog;
  readonly #events: EventBuilder;
  readonly #time: LogTime;
  readonly #pointers: PointerWriter;
  readonly #catalogue: CataloguePointer;
  readonly #texts: PolicyTexts;
  readonly #reader: CommandReader;
  /** Of commands that were decided by another: what the fleet is like now plays no part. */
  readonly #pastReader: CommandReader;
  readonly #gate: SignatureGate;
  readonly #proofs: PolicyProofs;
  readonly #modelProofs = new ModelProofs();
  #state: ControllerState = INITIAL_CONTROLLER_STATE;
  #documents = new Map<string, Uint8Array>();

  constructor(config: ControllerConfig, deps: ControllerDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#log = new ControlLog(deps);
    this.#events = new EventBuilder(config.controller, deps);
    this.#time = new LogTime(deps.clock);
    const { store, clock, telemetry, digest, checkPolicy } = deps;
    const document = (wanted: string): Uint8Array | undefined =>
      this.#documents.get(wanted) ?? this.#catalogue.document(wanted);
    this.#proofs = new PolicyProofs(deps.signer);
    this.#pointers = new PointerWriter({ store, clock, telemetry, document, proofs: this.#proofs });
    this.#texts = new PolicyTexts((wanted) => this.#documents.get(wanted), checkPolicy);
    this.#catalogue = new CataloguePointer({
      pointers: this.#pointers,
      digest,
      texts: this.#texts,
      proofs: this.#modelProofs,
      logger: telemetry.logger,
    });
    this.#gate = new SignatureGate(config.acceptUnsigned, deps.signatures);
    const readsMetrics = deps.metrics !== undefined;
    const { signer } = deps;
    const reading = { digest, checkPolicy, document, gate: this.#gate, readsMetrics, signer };
    const { fleetVersions } = deps;
    this.#pastReader = new CommandReader(config, reading);
    this.#reader = new CommandReader(config, {
      ...reading,
      ...(fleetVersions && { modelsNotReady: (policy) => fleetVersions.notReady(policy, 'all') }),
    });
  }

  get state(): ControllerState {
    return this.#state;
  }

  /**
   * Takes a term, rebuilds the state from the logs up to there and to the command at `committedOffset` (exclusive), writes the pointers. A
   * leadership that is over meanwhile leaves no trace, or no more than the term that it took.
   */
  async lead(committedOffset: number, over: AbortSignal): Promise<void> {
    const takes = (term: number): ControlEvent => this.#events.taken(term);
    let taken = await this.#log.fence(takes, over);
    if (taken.firstOffset > 0) this.#tellLost(taken.firstOffset);
    const stored = await this.#pointers.highestTerm(scopesOf(taken.entries, taken.commands));
    if (stored >= taken.term) taken = await this.#log.fence(takes, over, stored);
    const { term, entries, commands, appendedMs } = taken;
    over.throwIfAborted();
    this.#time.begin(appendedMs);
    this.#events.begin();
    this.#pointers.forget();
    this.#catalogue.forget();
    this.#replay(entries, commands, committedOffset);
    this.#state = evolve(this.#state, { type: 'leadership-taken', term });
    this.#time.reach(this.#state.lastMs);
    for (const scope of this.#state.scopes.keys()) await this.#takeOver(scope, over);
    await this.#bringPointer(CATALOGUE_SCOPE, over);
  }

  /**
   * Decides one command: the events are in the log, and the pointer in the store, before the promise resolves. Where the leadership ends
   * before the store has it, the next leader writes it.
   */
  async handle(record: InboundRecord, command: ControlCommand, over: AbortSignal): Promise<void> {
    const input = this.#fitting(await this.#read(record, command), record, command);
    over.throwIfAborted();
    await this.#act(input, { record, commandId: input.commandId, command }, over);
    // The epoch says nothing of who signed what it names, and routers look for that when they meet a text for the first time.
    if (command.type === 'PUBLISH_POLICY' || command.type === 'REVOKE_KEY')
      await this.#pointers.prove(input.scope, scopeState(this.#state, input.scope), this.#state.term, over);
  }

  /** A refusal may be for workers that were not heard of yet: then it is asked again, once. */
  async #read(record: InboundRecord, command: ControlCommand): Promise<ControllerCommand> {
    const { commandId, scope, actor } = command;
    // It comes again after a lead that was lost, perhaps over the time that reading it took; what it was decided to mean stands.
    if (this.#state.decided.has(commandId))
      return { kind: 'refused', commandId, scope, actor, reason: 'decided before' };
    const read = (): ControllerCommand =>
      this.#reader.read(command, this.#state, this.#time.nowMs(), record.timestampMs);
    const input = read();
    const { fleetVersions } = this.#deps;
    if (input.kind !== 'refused' || fleetVersions === undefined || fleetVersions.hasHeard()) return input;
    await fleetVersions.heard();
    return read();
  }

  /** A version that the catalogue has no room for is refused. */
  #fitting(input: ControllerCommand, record: InboundRecord, command: ControlCommand): ControllerCommand {
    if (input.kind !== 'publish-model') return input;
    const { commandId, scope, actor, model } = input;
    const proof = modelProof(command, model, record.timestampMs);
    const reason = this.#catalogue.refusal(this.#state, model, proof);
    return reason === undefined ? input : { kind: 'refused', commandId, scope, actor, reason };
  }

  /** Looks at every rollout that runs: what was seen, and what follows from it, goes into the log, and then into the store. */
  async look(over: AbortSignal): Promise<void> {
    for (const [name, scope] of this.#state.scopes) {
      if (scope.rollout === undefined || over.aborted) continue;
      const deps = { ...this.#deps, texts: this.#texts };
      const look = await lookOf(name, scope, this.#time.nowMs(), this.#config.rollout.lookMs, deps);
      if (look !== undefined) await this.#act(look, undefined, over);
    }
  }

  /** Looks at every policy that has constants to tune, where its period is over; a step goes into the log, and its child into the store. */
  async tune(over: AbortSignal): Promise<void> {
    const { tuner, digest, checkPolicy, telemetry } = this.#deps;
    const { tuning: terms } = this.#config;
    if (tuner === undefined || terms === undefined || !maySignChildren(this.#config, this.#deps)) return;
    for (const [name, scope] of this.#state.scopes) {
      const bytes = scope.live === undefined ? undefined : this.#documents.get(scope.live.digest);
      if (bytes === undefined || over.aborted) continue;
      const text = Buffer.from(bytes).toString('utf8');
      const deps = { tuner, digest, checkPolicy, telemetry, terms };
      await this.#record(tune(name, scope, text, this.#time.nowMs(), deps), undefined, over);
      await this.#bringPointer(name, over);
    }
  }

  /** Renews the lease of every canary. */
  async renew(over: AbortSignal): Promise<void> {
    for (const [name, scope] of this.#state.scopes)
      if (!over.aborted) await this.#pointers.renew(name, scope, this.#state.term);
  }

  /** Writes again what the store lost, and answers what it has beside the log. */
  async reconcile(over: AbortSignal): Promise<void> {
    for (const name of [...this.#state.scopes.keys(), CATALOGUE_SCOPE]) {
      if (over.aborted) return;
      const ahead =
        name === CATALOGUE_SCOPE
          ? await this.#catalogue.reconcile(this.#state)
          : await this.#pointers.reconcile(name, scopeState(this.#state, name), this.#state.term);
      await this.#goAbove(name, ahead, over);
    }
  }

  /** The event for a record on the control topic that cannot be read: it changes nothing, and the log says so. */
  unreadable(record: InboundRecord, reason: string): OutboundRecord {
    const command = { commandId: '', scope: 'control', actor: 'unknown' };
    const event: ControllerEvent = { type: 'command-refused', ...command, reason };
    return this.#log.recordOf(this.#events.build(event, { record, commandId: '' }, this.#state));
  }

  /** First what an earlier attempt, or leader, left undone: it follows from what the log already has. */
  async #act(input: ControllerInput, cause: Cause | undefined, over: AbortSignal): Promise<void> {
    await this.#record(conclude(this.#state, input.scope), cause, over);
    await this.#record(decide(this.#state, input), cause, over);
    await this.#bringPointer(input.scope, over);
    await this.#bringPointer(CATALOGUE_SCOPE, over);
  }

  /**
   * A new epoch for a rollout that runs: the store takes a renewal only from the leader that wrote the epoch, and the beats of one that does not know
   * yet that it lost the lead then count for nothing.
   */
  async #takeOver(scope: string, over: AbortSignal): Promise<void> {
    await this.#record(conclude(this.#state, scope), undefined, over);
    const { rollout, epoch } = scopeState(this.#state, scope);
    if (rollout !== undefined) {
      const cause = { commandId: '', scope, actor: AUTOMATIC };
      await this.#record([{ type: 'store-reseeded', ...cause, epoch: epoch + 1 }], undefined, over);
    }
    await this.#bringPointer(scope, over);
  }

  async #record(
    events: readonly ControllerEvent[],
    cause: Cause | undefined,
    over: AbortSignal,
  ): Promise<void> {
    for (const event of events) {
      over.throwIfAborted();
      await this.#log.append(this.#events.build(event, cause, this.#state));
      this.#tell(event);
      this.#keep(event, { command: cause?.command, appendedMs: cause?.record.timestampMs ?? 0 });
      this.#state = evolve(this.#state, event);
      if (cause?.command !== undefined) this.#gate.remember(cause.command, event, cause.record.timestampMs);
    }
  }

  /** A text that was refused is not kept. Nobody sent that of a child: the log has it. */
  #keep(event: ControllerEvent, by: ProvenBy): void {
    const live = 'scope' in event ? scopeState(this.#state, event.scope).live?.digest : undefined;
    this.#proofs.remember(event, by, live);
    this.#modelProofs.remember(event, by);
    if (event.type === 'policy-published' && by.command !== undefined)
      this.#documents.set(event.policy.digest, by.command.body);
    if (event.type !== 'policy-tuned') return;
    const { policy, text, epoch } = event;
    this.#documents.set(policy.digest, Buffer.from(text));
    this.#deps.tuner?.follow({ name: policy.name, version: policy.version, epoch });
  }

  /**
   * The store has what the log says, before the promise resolves. A store that is ahead with something else, by a leader that was replaced or a
   * store that was restored, is answered by an epoch above it: routers may have followed it, and nothing else takes them off it.
   */
  async #bringPointer(scope: string, over: AbortSignal): Promise<void> {
    await this.#goAbove(scope, await this.#bring(scope, over), over);
  }

  async #goAbove(scope: string, ahead: Ahead | undefined, over: AbortSignal): Promise<void> {
    for (let above = ahead?.epoch; above !== undefined; above = (await this.#bring(scope, over))?.epoch) {
      await this.#record(conclude(this.#state, scope), undefined, over);
      const sent = { commandId: '', scope, actor: AUTOMATIC };
      await this.#record(decide(this.#state, { kind: 'reseed', ...sent, above }), undefined, over);
    }
  }

  #bring(scope: string, over: AbortSignal): Promise<Ahead | undefined> {
    if (scope === CATALOGUE_SCOPE) return this.#catalogue.bring(this.#state, over);
    return this.#pointers.bring(scope, scopeState(this.#state, scope), this.#state.term, over);
  }

  /**
   * The log in its order. Of a command below `committedOffset` that has no event there (its event was of a type that this version does not know)
   * the meaning is decided anew, at its place.
   */
  #replay(
    entries: readonly LogEntry[],
    commands: ReadonlyMap<number, SentCommand>,
    committedOffset: number,
  ): void {
    const decided = new Set(entries.map(({ commandOffset }) => commandOffset));
    const undecided = [...commands].filter(([offset]) => offset < committedOffset && !decided.has(offset));
    this.#state = INITIAL_CONTROLLER_STATE;
    this.#gate.forget();
    this.#proofs.forget();
    this.#modelProofs.forget();
    this.#documents = new Map();
    let next = 0;
    const decideUpTo = (limit: number): void => {
      for (let sent = undecided[next]; sent !== undefined && sent[0] < limit; sent = undecided[next]) {
        const [, { command, appendedMs }] = sent;
        next += 1;
        const input = this.#pastReader.read(command, this.#state, this.#state.lastMs, appendedMs);
        for (const event of decide(this.#state, input)) {
          this.#keep(event, { command, appendedMs });
          this.#state = evolve(this.#state, event);
          this.#gate.remember(command, event, appendedMs);
        }
      }
    };
    for (const { commandOffset, event } of entries) {
      decideUpTo(commandOffset);
      const sent = commands.get(commandOffset);
      if (sent !== undefined) this.#gate.remember(sent.command, event, sent.appendedMs);
      this.#keep(event, { command: sent?.command, appendedMs: sent?.appendedMs ?? 0 });
      // Without a command's id a refusal tells of a record that could not be worked on.
      this.#state = evolve(this.#state, event);
    }
    decideUpTo(committedOffset);
  }

  /** What was decided there is decided anew of the commands, by the rules and settings of now. */
  #tellLost(firstOffset: number): void {
    const topic = this.#deps.topics.fixed('control-events');
    this.#deps.telemetry.logger.error(
      { topic, firstOffset },
      'the log of events has lost its beginning, which alone says what was decided and which epochs were used; it must be kept for ever: set retention.ms and retention.bytes of the topic to -1',
    );
  }

  #tell(event: ControllerEvent): void {
    const { logger } = this.#deps.telemetry;
    if (event.type === 'leadership-taken' || event.type === 'rollout-looked') return;
    if (event.type === 'tuning-looked') return;
    const { scope, actor, commandId, type } = event;
    if (event.type === 'command-refused')
      logger.warn({ scope, actor, commandId, reason: event.reason }, 'a command was refused');
    else logger.info({ scope, epoch: epochOf(event, this.#state), actor, commandId, type }, 'decided');
  }
}

/** Where routers demand signatures, a child without one would be refused by all of them. */
function maySignChildren({ acceptUnsigned }: ControllerConfig, { signer }: ControllerDeps): boolean {
  return acceptUnsigned || signer !== undefined;
}
