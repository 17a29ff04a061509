import { MISFIT } from '../../core/control/json-shape.ts';
import { readEnvelope } from '../../core/control/policy-envelope.ts';
import { type SignatureVerdict, verifyPolicy } from '../../core/control/verify-policy.ts';
import { RevokedKeys, type SignatureTrust } from '../signature-trust.ts';

/** The signatures of policies, and the keys that count no more. */
export class SignatureCheck {
  readonly #trust: SignatureTrust;
  readonly #scope: string;
  readonly #revoked: RevokedKeys;

  constructor(trust: SignatureTrust, scope: string) {
    this.#trust = trust;
    this.#scope = scope;
    this.#revoked = new RevokedKeys(trust);
  }

  /** Keys that count no more. */
  get revoked(): ReadonlySet<string> {
    return this.#revoked.keys;
  }

  /** What an earlier life of this router knew. */
  restore(revoked: readonly string[]): void {
    this.#revoked.restore(revoked);
  }

  /** @param list the signed commands of the store that took keys out */
  revoke(list: Uint8Array | undefined): void {
    this.#revoked.revoke(list);
  }

  /** @param text exact bytes of the policy */
  verdict(text: Uint8Array, envelope: Uint8Array | undefined): SignatureVerdict {
    const read = envelope === undefined ? undefined : readEnvelope(envelope);
    if (read === MISFIT) return { status: 'refused', reason: 'what should vouch for it cannot be read' };
    return verifyPolicy(this.#trust, this.revoked, read, { scope: this.#scope, text }, this.#trust.verify);
  }
}
