import { MISFIT } from '../../core/control/json-shape.ts';
import type { KeyRing } from '../../core/control/key-ring.ts';
import { readEnvelope, readRevocations } from '../../core/control/policy-envelope.ts';
import type { VerifySignature } from '../../core/control/verify-command.ts';
import { foldRevocations, type SignatureVerdict, verifyPolicy } from '../../core/control/verify-policy.ts';

/** What a router takes a policy by: the same keys, and the same leave to do without, as the controller. */
export interface PolicyTrust {
  readonly keys: KeyRing;
  /** A policy that nobody signed is run. One with a signature that does not hold is not, where there are keys. */
  readonly acceptUnsigned: boolean;
  readonly verify: VerifySignature;
}

/** The signatures of policies, and the keys that count no more. */
export class SignatureCheck {
  readonly #trust: PolicyTrust;
  readonly #scope: string;
  #revoked: ReadonlySet<string> = new Set();

  /** Keys that count no more. */
  get revoked(): ReadonlySet<string> {
    return this.#revoked;
  }

  constructor(trust: PolicyTrust, scope: string) {
    this.#trust = trust;
    this.#scope = scope;
  }

  /** What an earlier life of this router knew. */
  restore(revoked: readonly string[]): void {
    this.#revoked = new Set([...this.#revoked, ...revoked]);
  }

  /** Keys that these signed commands took out stay out, whatever the next list says. */
  revoke(list: Uint8Array | undefined): void {
    const read = list === undefined ? MISFIT : readRevocations(list);
    if (read === MISFIT) return;
    const { keys, verify } = this.#trust;
    this.#revoked = foldRevocations(keys, this.#revoked, read, verify);
  }

  /** @param text exact bytes of the policy */
  verdict(text: Uint8Array, envelope: Uint8Array | undefined): SignatureVerdict {
    const read = envelope === undefined ? undefined : readEnvelope(envelope);
    if (read === MISFIT) return { status: 'refused', reason: 'what should vouch for it cannot be read' };
    return verifyPolicy(this.#trust, this.#revoked, read, { scope: this.#scope, text }, this.#trust.verify);
  }
}
