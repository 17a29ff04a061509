import type { ControllerEvent } from '../../core/control/controller-event.ts';
import type { KeyRing } from '../../core/control/key-ring.ts';
import {
  INITIAL_SIGNATURE_STATE,
  rememberSignatures,
  revocationRefusal,
  revokeKey,
  type SignatureState,
} from '../../core/control/signature-state.ts';
import {
  type CommandCheck,
  checkSignature,
  type SignableCommand,
  type VerifySignature,
} from '../../core/control/verify-command.ts';

/** The keys that commands are checked with. */
export interface TrustedKeys {
  keys: KeyRing;
  verify: VerifySignature;
}

const NO_KEYS: TrustedKeys = { keys: new Map(), verify: () => false };

/** Holds what earlier commands mean for the signatures of later ones: the fold of the control log up to where the controller is. */
export class SignatureGate {
  readonly #acceptUnsigned: boolean;
  readonly #trusted: TrustedKeys;
  #state: SignatureState = INITIAL_SIGNATURE_STATE;

  constructor(acceptUnsigned: boolean, trusted: TrustedKeys = NO_KEYS) {
    this.#acceptUnsigned = acceptUnsigned;
    this.#trusted = trusted;
  }

  /** Back to the beginning of the log. */
  forget(): void {
    this.#state = INITIAL_SIGNATURE_STATE;
  }

  /** @param appendedMs the broker's append time of the command, ms since the epoch */
  check(command: SignableCommand, appendedMs: number): CommandCheck {
    const { keys, verify } = this.#trusted;
    const policy = { keys, acceptUnsigned: this.#acceptUnsigned };
    return checkSignature(policy, this.#state, command, appendedMs, verify);
  }

  /** Why a key cannot be revoked; undefined where it can. */
  revocationRefusal(keyId: string, appendedMs: number): string | undefined {
    return revocationRefusal(this.#trusted.keys, this.#state, keyId, appendedMs);
  }

  /** After an event of this command came into the log. What follows by itself, and a refusal, use up no signature. */
  remember(command: SignableCommand, event: ControllerEvent, appendedMs: number): void {
    if (event.type === 'leadership-taken' || event.type === 'command-refused') return;
    if (event.commandId === '' || event.commandId !== command.commandId) return;
    const signatures = [command.signature, command.coSignature].filter((each) => each !== null);
    this.#state = rememberSignatures(this.#state, signatures, appendedMs);
    if (event.type === 'key-revoked') this.#state = revokeKey(this.#state, event.keyId);
  }
}
