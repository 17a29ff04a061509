import { MISFIT } from '../core/control/json-shape.ts';
import { readRevocations } from '../core/control/policy-envelope.ts';
import { foldRevocations } from '../core/control/revocations.ts';
import type { SignaturePolicy, VerifySignature } from '../core/control/verify-command.ts';

/**
 * What routers take policies by, and workers model versions: the same keys, and the same leave to do without, as the controller. What nobody signed is
 * taken where there is leave; what has a signature that does not hold is not, where there are keys.
 */
export interface SignatureTrust extends SignaturePolicy {
  readonly verify: VerifySignature;
}

/** The keys that count no more, as the store's signed commands say. */
export class RevokedKeys {
  readonly #trust: SignatureTrust;
  #revoked: ReadonlySet<string> = new Set();

  constructor(trust: SignatureTrust) {
    this.#trust = trust;
  }

  get keys(): ReadonlySet<string> {
    return this.#revoked;
  }

  /** What an earlier life of this process knew. */
  restore(revoked: Iterable<string>): void {
    this.#revoked = new Set([...this.#revoked, ...revoked]);
  }

  /** Keys that these signed commands took out stay out, whatever the next list says. */
  revoke(list: Uint8Array | undefined): void {
    const read = list === undefined ? MISFIT : readRevocations(list);
    if (read === MISFIT) return;
    const { keys, verify } = this.#trust;
    this.#revoked = foldRevocations(keys, this.#revoked, read, verify);
  }
}
