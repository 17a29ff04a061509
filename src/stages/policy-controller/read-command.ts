import type { ControlCommand } from '../../contracts/records.ts';
import type { CommandKind, ControllerCommand } from '../../core/control/controller-command.ts';
import { type ControllerState, scopeState } from '../../core/control/controller-state.ts';
import {
  readPromote,
  readReason,
  readRevokeKey,
  readRollBack,
  readStart,
  readTune,
} from '../../core/control/read-body.ts';
import type { CommandCheck } from '../../core/control/verify-command.ts';
import { KEYS_SCOPE } from '../../core/control/verify-policy.ts';
import { leafBranches, type PolicyDocument } from '../../core/policy/document.ts';
import { type RolloutTerms, stagesOf } from '../../core/rollout/rollout-terms.ts';
import type { Signer } from '../../ports/signatures.ts';
import { childPolicy, nextVersion } from './child-policy.ts';
import type { ControllerConfig, RolloutConfig } from './controller-config.ts';
import type { SignatureGate } from './signature-gate.ts';

/** What the controller needs to know of a policy; a PolicyDocument is one. */
export type CheckedPolicy = Pick<PolicyDocument, 'name' | 'version' | 'expect' | 'rollout' | 'tree'>;

export interface CommandReaderDeps {
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  /** Reads and validates a policy document; its refusal is the reason in the log. */
  checkPolicy(bytes: Uint8Array): CheckedPolicy;
  /** The published text with this digest. */
  document(digest: string): Uint8Array | undefined;
  gate: Pick<SignatureGate, 'check' | 'revocationRefusal'>;
  /** The controller's own key. */
  signer: Signer | undefined;
}

const SUPPORTED = 'PUBLISH_POLICY, START, PROMOTE, HOLD, ABORT, ROLL_BACK, TUNE, RESEED, REVOKE_KEY';

interface Sent {
  commandId: string;
  scope: string;
  actor: string;
}

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
    const { commandId, scope } = command;
    const sent = { commandId, scope, actor: command.actor === '' ? 'unknown' : command.actor };
    try {
      if (commandId === '') {
        const reason = 'the command has no commandId, by which one sent twice acts once';
        return { kind: 'refused', ...sent, reason };
      }
      const check = this.#deps.gate.check(command, appendedMs);
      if (check.status === 'refused') {
        const actor = `${sent.actor} (not verified)`;
        return { kind: 'refused', ...sent, actor, reason: check.reason };
      }
      const by = { ...sent, actor: signersOf(check) ?? sent.actor };
      // Where nobody has to sign, nobody has to co-sign.
      const coSigned = this.#config.acceptUnsigned || check.coSignedBy !== undefined;
      return this.#understand(command, by, state, atMs, coSigned);
    } catch (error) {
      return { kind: 'refused', ...sent, reason: error instanceof Error ? error.message : String(error) };
    }
  }

  #understand(
    command: ControlCommand,
    sent: Sent,
    state: ControllerState,
    atMs: number,
    coSigned: boolean,
  ): ControllerCommand {
    const body = command.type === 'PUBLISH_POLICY' ? '' : command.body.toString('utf8');
    switch (command.type) {
      case 'PUBLISH_POLICY':
        return this.#publish(command, sent, atMs);
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
        return this.#revokeKey(sent, readRevokeKey(body));
      default: {
        const reason = `commands of type ${command.type} are not supported by this version of the controller; supported: ${SUPPORTED}`;
        return { kind: 'refused', ...sent, reason };
      }
    }
  }

  #revokeKey(sent: Sent, keyId: string): ControllerCommand {
    const reason =
      sent.scope === KEYS_SCOPE
        ? this.#deps.gate.revocationRefusal(keyId)
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
    const start = mode === 'staged' && autoStart ? { terms: this.#terms(checked), atMs } : undefined;
    const policy = { digest: this.#deps.digest(command.body), name, version };
    return { kind: 'publish-policy', ...sent, policy, mode, start };
  }

  /** The text is checked again: the fleet may have changed since it was published. */
  #start(body: string, sent: Sent, state: ControllerState, atMs: number): ControllerCommand {
    const { version, waivedLeaves, autoPromote, autoRollback } = readStart(body);
    const { published } = scopeState(state, sent.scope);
    const policy = published.find((known) => known.version === version);
    const bytes = policy === undefined ? undefined : this.#deps.document(policy.digest);
    if (bytes === undefined) {
      const known = published.map((each) => each.version).join(', ') || 'none';
      const reason = `version ${version} of ${sent.scope} is not published; published: ${known}`;
      return { kind: 'refused', ...sent, reason };
    }
    const terms = this.#terms(this.#deps.checkPolicy(bytes));
    const asked: CommandKind<'start'>['terms'] = {
      ...terms,
      waivedLeaves,
      autoPromote: autoPromote ?? terms.autoPromote,
      autoRollback: autoRollback ?? terms.autoRollback,
    };
    return { kind: 'start', ...sent, version, terms: asked, atMs };
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

  #terms(policy: CheckedPolicy): RolloutTerms {
    return termsOf(policy, this.#config.rollout);
  }
}

/** The actor of a command is not signed: of a signed one the log names the keys. */
function signersOf({ signedBy, coSignedBy }: Extract<CommandCheck, { status: 'ok' }>): string | undefined {
  return coSignedBy === undefined ? signedBy : `${signedBy} and ${coSignedBy}`;
}

function termsOf({ rollout, expect, tree }: CheckedPolicy, config: RolloutConfig): RolloutTerms {
  const { leaseMs, limits, autoPromote, autoRollback } = config;
  return {
    stages: stagesOf(rollout),
    unit: rollout.unit,
    leaseMs,
    leaves: leafBranches(tree).map(({ id }) => id),
    waivedLeaves: [],
    expect,
    limits,
    autoPromote,
    autoRollback,
  };
}
