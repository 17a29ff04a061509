import { createHash } from 'node:crypto';
import { ed25519Verifier } from '../../src/adapters/system/ed25519.ts';
import type { Codecs } from '../../src/contracts/codec.ts';
import { type ControlCommand, makeControlCommand } from '../../src/contracts/records.ts';
import { topicNames } from '../../src/contracts/topics.ts';
import type { ControllerEvent } from '../../src/core/control/controller-event.ts';
import {
  type ControllerState,
  evolve,
  INITIAL_CONTROLLER_STATE,
  scopeState,
} from '../../src/core/control/controller-state.ts';
import { inForce } from '../../src/core/control/fence.ts';
import { readControllerEvent } from '../../src/core/control/read-event.ts';
import { isSameJson } from '../../src/core/control/same-json.ts';
import { MillraceError } from '../../src/core/errors.ts';
import { REFERENCE_FLEET } from '../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../src/core/policy/parse.ts';
import { DocumentError } from '../../src/core/policy/problem.ts';
import { validatePolicy } from '../../src/core/policy/validate.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { replay } from '../../src/core/rollout/replay.ts';
import { DEFAULT_LIMITS } from '../../src/core/rollout/rollout-terms.ts';
import { SIGNALS } from '../../src/core/signals/extract.ts';
import type { InboundRecord } from '../../src/ports/message-bus.ts';
import { Controller } from '../../src/stages/policy-controller/controller.ts';
import {
  type ControllerConfig,
  DEFAULT_ROLLOUT_CONFIG,
} from '../../src/stages/policy-controller/controller-config.ts';
import type { CheckedPolicy } from '../../src/stages/policy-controller/read-command.ts';
import { registeredCodecs } from '../contract/fixture.ts';
import { commandOf, PEOPLE, Signing, variantOf } from './commands.ts';
import { handClock, ListStore, listBus, mute } from './control-log.ts';
import { type Account, type Fuzzer, isPlain, runFuzzer } from './harness.ts';
import { observationOf } from './observations.ts';
import { oneIn, pick } from './pick.ts';

/**
 * Fuzzing of the control handler: a controller on topics and a store of its own is sent commands of every type, right, wrong, damaged and badly signed,
 * while rollouts are looked at and leaders change. The log of events must explain everything: its fold is the controller's state, the rules derive it
 * again, and nothing was accepted that nobody signed.
 *
 *     node test/fuzz/control.ts --inputs 1000000 --seed 1 --processes 2
 */

/** Commands of one installation. */
const SESSION = 100;
/** Commands that variants are made of. */
const EARLIER_MAX = 8;
const BEGAN_MS = Date.UTC(2026, 10, 30);
const topics = topicNames('fuzz');
const { verify } = ed25519Verifier();
const forever = new AbortController().signal;

/** Policies are few, and reading them is fuzzed by itself. */
const CHECKED_MAX = 2_000;
const checked = new Map<string, CheckedPolicy | MillraceError>();

function checkPolicy(bytes: Uint8Array): CheckedPolicy {
  const key = Buffer.from(bytes).toString('latin1');
  let found = checked.get(key);
  if (found === undefined) {
    found = checkAnew(bytes);
    if (checked.size >= CHECKED_MAX) checked.clear();
    checked.set(key, found);
  }
  if (found instanceof MillraceError) throw found;
  return found;
}

function checkAnew(bytes: Uint8Array): CheckedPolicy | MillraceError {
  try {
    const document = parsePolicy(bytes);
    const errors = validatePolicy(document, REFERENCE_FLEET, SIGNALS).filter(
      ({ severity }) => severity === 'error',
    );
    return errors.length > 0 ? new DocumentError('INVALID_POLICY', errors) : document;
  } catch (error) {
    if (error instanceof MillraceError) return error;
    throw error;
  }
}

function digest(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function configOf(draw: Generator): ControllerConfig {
  const limits = { ...DEFAULT_LIMITS, shadowRequestsMin: 10, shareRequestsMin: 10, leafHitsMin: 1 };
  return {
    controller: 'controller-1',
    acceptUnsigned: !oneIn(draw, 10),
    rollout: {
      ...DEFAULT_ROLLOUT_CONFIG,
      mode: pick(draw, ['staged', 'staged', 'staged', 'immediate']),
      autoStart: oneIn(draw, 2),
      autoPromote: oneIn(draw, 2),
      autoRollback: !oneIn(draw, 4),
      limits,
    },
    tuning: undefined,
  };
}

/** One installation, from its first command on. */
class Session {
  readonly #draw: Generator;
  readonly #codecs: Codecs;
  readonly #account: Account;
  readonly #config: ControllerConfig;
  readonly #clock = handClock(BEGAN_MS);
  readonly #bus = listBus(this.#clock);
  readonly #store = new ListStore();
  readonly #signing: Signing;
  readonly #isInsistent: boolean;
  readonly #accepted = new Set<string>();
  readonly #revoked = new Set<string>();
  #controller: Controller;
  #sent = 0;
  #earlier: readonly ControlCommand[] = [];
  readonly #entries: { term: number; event: ControllerEvent }[] = [];
  #told = 0;

  constructor(draw: Generator, codecs: Codecs, account: Account) {
    this.#draw = draw;
    this.#codecs = codecs;
    this.#account = account;
    this.#config = configOf(draw);
    this.#signing = new Signing(draw);
    this.#isInsistent = oneIn(draw, 10);
    this.#controller = this.#newController();
  }

  async run(commands: number): Promise<void> {
    await this.#controller.lead(0, forever);
    for (let left = commands; left > 0; left--) {
      await this.#sendOne();
      if (oneIn(this.#draw, 4)) await this.#meanwhile();
      if (oneIn(this.#draw, 40)) await this.#changeLeader();
    }
    this.#checkLog();
  }

  #newController(): Controller {
    const keys = new Map(PEOPLE.map(({ key }) => [key.keyId, key]));
    return new Controller(this.#config, {
      bus: this.#bus,
      store: this.#store as never,
      codecs: this.#codecs,
      topics,
      clock: this.#clock,
      telemetry: mute,
      digest,
      checkPolicy,
      signatures: { keys, verify },
      observer: { observe: async () => (oneIn(this.#draw, 8) ? undefined : observationOf(this.#draw)) },
    });
  }

  async #sendOne(): Promise<void> {
    const draw = this.#draw;
    const bytes = this.#bytesOf(this.#commandOf());
    this.#clock.nowMs += pick(draw, this.#isInsistent ? [0, 1] : [0, 1, 1_000, 30_000, 600_000]);
    if (oneIn(draw, 60)) this.#clock.skewMs = pick(draw, [0, -3_600_000, 3_600_000]);
    if (oneIn(draw, 50)) this.#store.away = 1 + draw.below(3);
    const topic = topics.fixed('control');
    await this.#bus.produce({ topic, partition: 0, key: null, value: bytes });
    const record = this.#bus.of(topic).at(-1);
    if (record !== undefined) await this.#account.inputOf(bytes, () => this.#take(record));
  }

  #commandOf(): ControlCommand {
    const draw = this.#draw;
    this.#sent += 1;
    const command = this.#insistence() ?? this.#anyCommand();
    this.#earlier = [...this.#earlier.slice(-EARLIER_MAX), command];
    return this.#config.acceptUnsigned && !oneIn(draw, 60)
      ? { ...command, signature: null, coSignature: null }
      : this.#signing.sign(command, this.#clock.wallMs());
  }

  #anyCommand(): ControlCommand {
    const draw = this.#draw;
    return this.#earlier.length > 0 && !oneIn(draw, 3)
      ? variantOf(draw, pick(draw, this.#earlier), this.#sent)
      : commandOf(draw, this.#sent, (name) => this.#newest(name));
  }

  /** Somebody holds the rollout that runs, again and again, with a lot to say. */
  #insistence(): ControlCommand | undefined {
    const running = [...this.#controller.state.scopes].find(([, { rollout }]) => rollout !== undefined);
    if (!this.#isInsistent || running === undefined) return undefined;
    const body = Buffer.from(JSON.stringify({ reason: `${this.#sent} ${'x'.repeat(2_000)}` }));
    const [scope] = running;
    return makeControlCommand({ commandId: `c-${this.#sent}`, scope, type: 'HOLD', body });
  }

  #newest(name: string): number {
    const { published } = scopeState(this.#controller.state, `policy/${name}`);
    return published.reduce((newest, { version }) => Math.max(newest, version), 0);
  }

  /** Mostly as it was encoded; else damaged behind its frame, or without one. */
  #bytesOf(command: ControlCommand): Buffer {
    const draw = this.#draw;
    const bytes = this.#codecs.for('ControlCommand').encode(command);
    if (!oneIn(draw, 8)) return bytes;
    const at = draw.below(bytes.length);
    switch (draw.below(4)) {
      case 0:
        bytes[at] = draw.below(256);
        return bytes;
      case 1:
        return Buffer.concat([
          bytes.subarray(0, at),
          bytes.subarray(Math.min(bytes.length, at + draw.below(4))),
        ]);
      case 2:
        return bytes.subarray(0, at);
      default:
        return Buffer.concat([
          bytes.subarray(0, at),
          Buffer.of(draw.below(256), draw.below(256)),
          bytes.subarray(at),
        ]);
    }
  }

  /** As the stage does: what cannot be read is refused in the log, what cannot be worked on as well. */
  async #take(record: InboundRecord): Promise<void> {
    const account = this.#account;
    const decoded = this.#codecs.for('ControlCommand').decode(record.value);
    if (decoded.status !== 'ok') {
      account.outcome(decoded.status);
      await this.#bus.produce(
        this.#controller.unreadable(
          record,
          decoded.status === 'unreadable' ? `${decoded.code}: ${decoded.message}` : 'unknown',
        ),
      );
      this.#newEvents();
      return;
    }
    account.past();
    const before = this.#controller.state;
    try {
      await this.#controller.handle(record, decoded.value, forever);
    } catch (error) {
      if (!(error instanceof MillraceError) || error.retryable) throw error;
      account.outcome(`dead letter: ${error.code}`);
      await this.#bus.produce(this.#controller.unreadable(record, `${error.code}: ${error.message}`));
    }
    this.#checkAnswer(decoded.value, before);
  }

  #checkAnswer(command: ControlCommand, before: ControllerState): void {
    const account = this.#account;
    const events = this.#newEvents();
    const answers = events.filter((event) => 'commandId' in event && event.commandId === command.commandId);
    const { commandId } = command;
    const isRepeated = commandId !== '' && before.decided.has(commandId);
    account.outcome(isRepeated ? 'repeated' : (answers[0]?.type ?? 'unanswered'));
    account.expect(isRepeated || events.length > 0, 'a command without an event');
    account.work('events of a command', events.length);
    const isRefused = events.every(({ type }) => type === 'command-refused');
    if (isRefused)
      account.expect(this.#controller.state.scopes === before.scopes, 'a refusal changed a scope');
    else if (answers.some(({ type }) => type !== 'command-refused')) this.#checkSigned(command, answers);
    this.#checkPointers(before);
  }

  /** Only what was signed as it is, once, by a key that still counts. */
  #checkSigned(command: ControlCommand, answers: readonly ControllerEvent[]): void {
    const account = this.#account;
    const { signature, coSignature } = command;
    if (!this.#config.acceptUnsigned) account.expect(signature !== null, 'an unsigned command was accepted');
    account.expect(this.#signing.wasSigned(command), 'a command was accepted that nobody signed');
    for (const each of [signature, coSignature]) {
      if (each === null) continue;
      const used = `${each.keyId}\n${each.nonce}`;
      account.expect(!this.#accepted.has(used), 'a nonce was accepted twice');
      account.expect(!this.#revoked.has(each.keyId), 'a revoked key was accepted');
      this.#accepted.add(used);
    }
    for (const answer of answers) {
      if (answer.type === 'key-revoked') this.#revoked.add(answer.keyId);
      if (answer.type === 'policy-published')
        account.expect(
          answer.scope === `policy/${answer.policy.name}`,
          'a policy in a scope of another name',
        );
    }
  }

  /** Epochs only rise, and the store has what the log says. */
  #checkPointers(before: ControllerState): void {
    const account = this.#account;
    account.expect(this.#store.broken === undefined, String(this.#store.broken));
    for (const [scope, { live, epoch, rollout }] of this.#controller.state.scopes) {
      account.expect(epoch >= (before.scopes.get(scope)?.epoch ?? 0), `the epoch of ${scope} fell`);
      const pointer = this.#store.pointers.get(scope);
      account.expect(
        pointer?.stable.digest === live?.digest,
        `the store has another policy live in ${scope}`,
      );
      account.expect(
        pointer === undefined || pointer.term === this.#controller.state.term,
        `the store has another term in ${scope}`,
      );
      account.expect(
        (pointer?.epoch ?? 0) === (live === undefined ? 0 : epoch),
        `the store has another epoch of ${scope}`,
      );
      account.expect(
        pointer?.canary?.policy.digest === rollout?.candidate.digest,
        `the store has another canary in ${scope}`,
      );
    }
  }

  /** Events that came since the last time: each can be read again, and means the same. */
  #newEvents(): ControllerEvent[] {
    const account = this.#account;
    const records = this.#bus.of(topics.fixed('control-events')).slice(this.#told);
    this.#told += records.length;
    return records.flatMap((record) => {
      const decoded = this.#codecs.for('ControlEvent').decode(record.value);
      if (decoded.status !== 'ok') {
        account.fail(`an event that cannot be decoded: ${decoded.status}`);
        return [];
      }
      const { evidence, type, term } = decoded.value;
      account.work('bytes of evidence', evidence.length);
      const event = readControllerEvent(evidence);
      const isSame =
        event !== undefined &&
        event.type === type &&
        isSameJson(JSON.parse(JSON.stringify(event)), JSON.parse(evidence));
      account.expect(isSame, `an event that reads as something else: ${evidence.slice(0, 400)}`);
      account.expect(isPlain(event), 'an event with a prototype of its own');
      if (event === undefined) return [];
      this.#entries.push({ term, event });
      return [event];
    });
  }

  async #meanwhile(): Promise<void> {
    this.#clock.nowMs += pick(this.#draw, [1_000, 10_000, 60_000]);
    await this.#controller.look(forever);
    if (oneIn(this.#draw, 4)) await this.#controller.renew(forever);
    if (oneIn(this.#draw, 10)) await this.#controller.reconcile(forever);
    const events = this.#newEvents();
    for (const { type } of events) this.#account.outcome(type);
  }

  /** Sometimes one that died before it committed: the commands since are delivered again. */
  async #changeLeader(): Promise<void> {
    const commands = this.#bus.of(topics.fixed('control'));
    const before = foldOf(this.#events());
    this.#account.expect(
      isSameState(before, this.#controller.state),
      'the log does not fold to the state of its leader',
    );
    this.#controller = this.#newController();
    await this.#controller.lead(commands.length, forever);
    const after = foldOf(this.#events());
    this.#account.expect(
      isSameState(after, this.#controller.state),
      'the log does not fold to the state of the next leader',
    );
    const epochs = [...before.scopes].every(
      ([scope, { epoch }]) => (after.scopes.get(scope)?.epoch ?? 0) >= epoch,
    );
    this.#account.expect(epochs, 'an epoch fell with the leader');
    this.#account.outcome('leaders');
    const again = commands.at(-1);
    if (again === undefined || !oneIn(this.#draw, 2)) return;
    const decoded = this.#codecs.for('ControlCommand').decode(again.value);
    if (decoded.status !== 'ok' || decoded.value.commandId === '') return;
    const scopes = [...this.#controller.state.scopes];
    await this.#controller.handle(again, decoded.value, forever);
    this.#account.expect(
      isSameJson(scopes, [...this.#controller.state.scopes]),
      'a command that was decided acted again',
    );
    this.#newEvents();
  }

  /** What the log says, as far as it was read. */
  #events(): ControllerEvent[] {
    this.#newEvents();
    return inForce(this.#entries).map(({ event }) => event);
  }

  #checkLog(): void {
    const events = this.#events();
    const { disagreements, pending, state } = replay(events);
    const [first] = disagreements;
    this.#account.expect(
      first === undefined,
      `the rules derive something else: ${JSON.stringify(first)?.slice(0, 1_500)}`,
    );
    this.#account.expect(
      pending.length === 0,
      `something is left undone: ${JSON.stringify(pending).slice(0, 400)}`,
    );
    this.#account.expect(
      isSameState(state, this.#controller.state),
      'the log does not fold to the state in the end',
    );
  }
}

function foldOf(events: readonly ControllerEvent[]): ControllerState {
  return events.reduce(evolve, INITIAL_CONTROLLER_STATE);
}

function isSameState(one: ControllerState, other: ControllerState): boolean {
  const plain = ({ term, scopes, decided, lastMs }: ControllerState): unknown =>
    JSON.parse(JSON.stringify({ term, scopes: [...scopes], decided: [...decided], lastMs }));
  return isSameJson(plain(one), plain(other));
}

/** Whatever a command says: the reasons of 16 holds, 1 000 characters each, are the most that these policies of few leaves can come to. */
const EVIDENCE_BYTES_MAX = 24 * 1024;

const fuzzer: Fuzzer = {
  name: 'control',
  batch: 2_000,
  heapGrowthMax: 192 * 1024 * 1024,
  workMax: { 'events of a command': 17, 'bytes of evidence': EVIDENCE_BYTES_MAX },
  async open() {
    const codecs = await registeredCodecs();
    return async (draw, count, account) => {
      for (let left = count; left > 0; left -= SESSION)
        await new Session(draw, codecs, account).run(Math.min(SESSION, left));
    };
  },
};

await runFuzzer(fuzzer);
