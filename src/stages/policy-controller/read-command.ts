import type { CommandType, ControlCommand } from '../../contracts/records.ts';
import type { CommandKind, ControllerCommand } from '../../core/control/controller-command.ts';
import { type ControllerState, scopeState } from '../../core/control/controller-state.ts';
import { listVersions } from '../../core/control/published-policy.ts';
import {
  readPromote,
  readReason,
  readRevokeKey,
  readRollBack,
  readStart,
  readTune,
} from '../../core/control/read-body.ts';
import { KEYS_SCOPE } from '../../core/control/revocations.ts';
import type { CommandCheck } from '../../core/control/verify-command.ts';
import { readPublishedModel } from '../../core/model/read-published-model.ts';
import type { PolicyDocument } from '../../core/policy/document.ts';
import type { RolloutTerms } from '../../core/rollout/rollout-terms.ts';
import type { Signer } from '../../ports/signatures.ts';
import { childPolicy, nextVersion } from './child-policy.ts';
import type { ControllerConfig } from './controller-config.ts';
import type { SignatureGate } from './signature-gate.ts';
import { termsOf } from './terms-of.ts';

/** What the controller needs to know of a policy; a PolicyDocument is one. */
export type CheckedPolicy = Pick<
  PolicyDocument,
  'name' | 'version' | 'models' | 'expect' | 'rollout' | 'tree'
>;

export interface CommandReaderDeps {
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  /** Reads and validates a policy document; its refusal is the reason in the log. */
  checkPolicy(bytes: Uint8Array): CheckedPolicy;
  /** The published text with this digest. */
  document(digest: string): Uint8Array | undefined;
  /** Whether queries of guardrails can be read. */
  readsMetrics: boolean;
  gate: Pick<SignatureGate, 'check' | 'revocationRefusal'>;
  /** Why the fleet cannot run the model versions that a policy names; without it that is not asked. */
  modelsNotReady?(policy: CheckedPolicy): readonly string[];
  /** The controller's own key. */
  signer: Signer | undefined;
}

/** Types of commands that this version acts on; the schema has more. */
export const SUPPORTED_TYPES = [
  'PUBLISH_POLICY',
  'PUBLISH_MODEL',
  'START',
  'PROMOTE',
  'HOLD',
  'ABORT',
  'ROLL_BACK',
  'TUNE',
  'RESEED',
  'REVOKE_KEY',
] as const satisfies readonly CommandType[];

const REASONS_SHOWN_MAX = 5;
/** Of a commandId, a scope, an actor: they stand in the log for ever. */
const NAME_LENGTH_MAX = 128;

interface Sent {
  commandId: string;
  scope: string;
  actor: string;
}

/** Whose names are not to be repeated. */
const NOBODY: Sent = { commandId: '', scope: 'control', actor: 'unknown' };

/** The border for commands: what one asks for, its body read and checked. One that cannot be accepted becomes its refusal. */
export class CommandReader {
  readonly #config: ControllerConfig;
  readonly #deps: CommandReaderDeps;

  constructor(config: ControllerConfig, deps: CommandReaderDeps) {
    this.#config = config;
    this.#deps = deps;
  }

  /**
   * @param atMs log time
   * @param appendedMs the broker's append time of the command
   */
  read(command: ControlCommand, state: ControllerState, atMs: number, appendedMs: number): ControllerCommand {
    const tooLong = lengthRefusal(command);
    if (tooLong !== undefined) return { kind: 'refused', ...NOBODY, reason: tooLong };
    const { commandId, scope } = command;
    const sent = { commandId, scope, actor: command.actor === '' ? 'unknown' : command.actor };
    let by = sent;
    try {
      if (commandId === '') {
        const reason = 'the command has no commandId, by which one sent twice acts once';
        return { kind: 'refused', ...sent, reason };
      }
      const check = this.#deps.gate.check(command, appendedMs);
      if (check.status === 'refused') {
        const actor = `${claimedActor(command)} (not verified)`;
        return { kind: 'refused', ...sent, actor, reason: check.reason };
      }
      by = { ...sent, actor: signersOf(check) ?? sent.actor };
      // Where nobody has to sign, nobody has to co-sign.
      const coSigned = this.#config.acceptUnsigned || check.coSignedBy !== undefined;
      return this.#understand(command, by, state, { atMs, appendedMs }, coSigned);
    } catch (error) {
      return { kind: 'refused', ...by, reason: error instanceof Error ? error.message : String(error) };
    }
  }

  #understand(
    command: ControlCommand,
    sent: Sent,
    state: ControllerState,
    { atMs, appendedMs }: { atMs: number; appendedMs: number },
    coSigned: boolean,
  ): ControllerCommand {
    const body = command.type === 'PUBLISH_POLICY' ? '' : command.body.toString('utf8');
    switch (command.type) {
      case 'PUBLISH_POLICY':
        return this.#publish(command, sent, atMs);
      case 'PUBLISH_MODEL':
        return this.#publishModel(body, sent);
      case 'START':
        return this.#start(body, sent, state, atMs);
      case 'PROMOTE':
        return { kind: 'promote', ...sent, ...readPromote(body), coSigned, atMs };
      case 'HOLD':
        return { kind: 'hold', ...sent, reason: readReason('HOLD', body), atMs };
      case 'ABORT':
        return { kind: 'abort', ...sent, reason: readReason('ABORT', body), atMs };
      case 'ROLL_BACK':
        return { kind: 'roll-back', ...sent, toVersion: readRollBack(body), atMs };
      case 'TUNE':
        return this.#tune(body, sent, state, atMs);
      case 'RESEED':
        return { kind: 'reseed', ...sent };
      case 'REVOKE_KEY':
        return this.#revokeKey(sent, readRevokeKey(body), appendedMs);
      default: {
        const type = command.type satisfies Exclude<CommandType, (typeof SUPPORTED_TYPES)[number]>;
        const reason = `commands of type ${type} are not supported by this version of the controller; supported: ${SUPPORTED_TYPES.join(', ')}`;
        return { kind: 'refused', ...sent, reason };
      }
    }
  }

  #revokeKey(sent: Sent, keyId: string, appendedMs: number): ControllerCommand {
    const reason =
      sent.scope === KEYS_SCOPE
        ? this.#deps.gate.revocationRefusal(keyId, appendedMs)
        : `the scope of REVOKE_KEY is ${KEYS_SCOPE}, not ${sent.scope}`;
    return reason === undefined
      ? { kind: 'revoke-key', ...sent, keyId }
      : { kind: 'refused', ...sent, reason };
  }

  #publish(command: ControlCommand, sent: Sent, atMs: number): ControllerCommand {
    const checked = this.#deps.checkPolicy(command.body);
    const { name, version } = checked;
    const { mode, autoStart } = this.#config.rollout;
    const scope = `policy/${name}`;
    if (command.scope !== scope) {
      const reason = `the policy is named ${name}, so the command's scope must be ${scope}, not ${command.scope}`;
      return { kind: 'refused', ...sent, reason };
    }
    const notReady = this.#notReady(checked);
    if (notReady !== undefined) return { kind: 'refused', ...sent, reason: notReady };
    const unreadable = this.#unreadableGuardrails(checked);
    if (unreadable !== undefined) return { kind: 'refused', ...sent, reason: unreadable };
    const start = mode === 'staged' && autoStart ? { terms: this.#terms(checked), atMs } : undefined;
    const policy = { digest: this.#deps.digest(command.body), name, version };
    return { kind: 'publish-policy', ...sent, policy, mode, start };
  }

  #publishModel(body: string, sent: Sent): ControllerCommand {
    const model = readPublishedModel(body, (text) => this.#deps.digest(Buffer.from(text)));
    const scope = `model/${model.family}`;
    if (sent.scope === scope) return { kind: 'publish-model', ...sent, model };
    const reason = `the model's family is ${model.family}, so the command's scope must be ${scope}, not ${sent.scope}`;
    return { kind: 'refused', ...sent, reason };
  }

  /** The text is checked again: the fleet may have changed since it was published. */
  #start(body: string, sent: Sent, state: ControllerState, atMs: number): ControllerCommand {
    const { version, waivedLeaves, autoPromote, autoRollback } = readStart(body);
    const { published } = scopeState(state, sent.scope);
    const policy = published.find((known) => known.version === version);
    const bytes = policy === undefined ? undefined : this.#deps.document(policy.digest);
    if (bytes === undefined) {
      const reason = `version ${version} of ${sent.scope} is not published; published: ${listVersions(published)}`;
      return { kind: 'refused', ...sent, reason };
    }
    const checked = this.#deps.checkPolicy(bytes);
    const notReady = this.#notReady(checked);
    if (notReady !== undefined) return { kind: 'refused', ...sent, reason: notReady };
    const unreadable = this.#unreadableGuardrails(checked);
    if (unreadable !== undefined) return { kind: 'refused', ...sent, reason: unreadable };
    const terms = this.#terms(checked);
    const asked: CommandKind<'start'>['terms'] = {
      ...terms,
      waivedLeaves,
      autoPromote: autoPromote ?? terms.autoPromote,
      autoRollback: autoRollback ?? terms.autoRollback,
    };
    return { kind: 'start', ...sent, version, terms: asked, atMs };
  }

  #notReady(policy: CheckedPolicy): string | undefined {
    const reasons = this.#deps.modelsNotReady?.(policy) ?? [];
    if (reasons.length === 0) return undefined;
    const more = reasons.length > REASONS_SHOWN_MAX ? ` and ${reasons.length - REASONS_SHOWN_MAX} more` : '';
    const shown = reasons
      .slice(0, REASONS_SHOWN_MAX)
      .map((reason) => reason.replace(/\.$/, ''))
      .join('; ');
    return `${policy.name} ${policy.version} names model versions that are not ready: ${shown}${more}. See millrace model status`;
  }

  #tune(body: string, sent: Sent, state: ControllerState, atMs: number): ControllerCommand {
    const { name, value } = readTune(body);
    if (!this.#config.acceptUnsigned && this.#deps.signer === undefined) {
      const reason =
        'this controller has no key of its own (controller.signingKey), and routers run no policy that nobody signed; publish a version with that constant instead';
      return { kind: 'refused', ...sent, reason };
    }
    const { live, published } = scopeState(state, sent.scope);
    const bytes = live === undefined ? undefined : this.#deps.document(live.digest);
    if (live === undefined || bytes === undefined)
      return { kind: 'refused', ...sent, reason: `nothing is live in ${sent.scope}` };
    const change = { name, to: value, version: nextVersion(published) };
    const child = childPolicy(Buffer.from(bytes).toString('utf8'), live, change, this.#deps);
    return { kind: 'tune', ...sent, name, value, child, atMs };
  }

  /** A guardrail that nobody can read would hold the rollout for ever. */
  #unreadableGuardrails({ rollout }: CheckedPolicy): string | undefined {
    const { queries } = rollout.guardrails;
    if (queries.length === 0 || this.#deps.readsMetrics) return undefined;
    const names = queries.map(({ name }) => name).join(', ');
    return `the policy's guardrails query a Prometheus (${names}), and this controller has no address of one; set controller.prometheusUrl, or take them out`;
  }

  #terms(policy: CheckedPolicy): RolloutTerms {
    return termsOf(policy, this.#config.rollout);
  }
}

function lengthRefusal({ commandId, scope, actor }: ControlCommand): string | undefined {
  const tooLong = Object.entries({ commandId, scope, actor }).find(
    ([, text]) => text.length > NAME_LENGTH_MAX,
  );
  if (tooLong === undefined) return undefined;
  const [name, text] = tooLong;
  return `the command's ${name} has ${text.length} characters; allowed: at most ${NAME_LENGTH_MAX}`;
}

/** The actor of a command is not signed: of a signed one the log names the keys. */
/** Who says to have sent it, or, where nobody does, whose key says to have signed it. */
function claimedActor({ actor, signature }: ControlCommand): string {
  if (actor !== '') return actor;
  const keyId = signature?.keyId.slice(0, NAME_LENGTH_MAX) ?? '';
  return keyId === '' ? 'unknown' : keyId;
}

function signersOf({ signedBy, coSignedBy }: Extract<CommandCheck, { status: 'ok' }>): string | undefined {
  return coSignedBy === undefined ? signedBy : `${signedBy} and ${coSignedBy}`;
}
