import type { ControlCommand } from '../../contracts/records.ts';
import type { ControllerEvent } from '../../core/control/controller-event.ts';
import {
  type PolicyEnvelope,
  type SignedEnvelope,
  type SignedRevocation,
  writeEnvelope,
  writeRevocations,
} from '../../core/control/policy-envelope.ts';
import { signatureVersion, signedBytes } from '../../core/control/signed-bytes.ts';
import type { Signer } from '../../ports/signatures.ts';

/** A child is in the store within seconds; a signature of the controller's is good for a command for as long as that may take. */
const VALID_MS = 3_600_000;

type PolicyTuned = Extract<ControllerEvent, { type: 'policy-tuned' }>;

/** An accepted command, or an event that no command brought about. */
export interface ProvenBy {
  readonly command: ControlCommand | undefined;
  /** The broker's append time of the command, ms since the epoch. */
  readonly appendedMs: number;
}

/**
 * Who vouches for each policy, so that routers need not take the store's word: a fold of the accepted commands, as the log has them. For its own
 * children the controller signs anew whenever it leads, with its own key.
 */
export class PolicyProofs {
  readonly #signer: Signer | undefined;
  readonly #published = new Map<string, PolicyEnvelope>();
  readonly #children = new Map<string, { readonly event: PolicyTuned; readonly root: string }>();
  #revocations: readonly SignedRevocation[] = [];

  constructor(signer: Signer | undefined) {
    this.#signer = signer;
  }

  /** Back to the beginning of the log. */
  forget(): void {
    this.#published.clear();
    this.#children.clear();
    this.#revocations = [];
  }

  /** @param live digest of the policy that was live before the event */
  remember(event: ControllerEvent, { command, appendedMs }: ProvenBy, live: string | undefined): void {
    if (event.type === 'policy-tuned' && live !== undefined)
      this.#children.set(event.policy.digest, { event, root: this.rootOf(live) ?? live });
    if (command === undefined || command.signature === null || command.commandId === '') return;
    if (!('commandId' in event) || event.commandId !== command.commandId) return;
    const { commandId, scope, type, signature, coSignature, body } = command;
    const envelope: SignedEnvelope = { commandId, scope, type, signature, coSignature, appendedMs };
    if (event.type === 'policy-published')
      this.#published.set(event.policy.digest, { kind: 'published', command: envelope });
    if (event.type === 'key-revoked') this.#revocations = [...this.#revocations, { ...envelope, body }];
  }

  envelopeOf(digest: string): Uint8Array | undefined {
    const published = this.#published.get(digest);
    if (published !== undefined) return writeEnvelope(published);
    const child = this.#children.get(digest);
    if (child === undefined || this.#signer === undefined) return undefined;
    const command = this.#sign(child.event, this.#signer);
    return writeEnvelope({ kind: 'tuned', command, root: child.root });
  }

  /** The policy that people published, of one that is its child. */
  rootOf(digest: string): string | undefined {
    return this.#children.get(digest)?.root;
  }

  /** Undefined while no key was taken out. */
  revocations(): Uint8Array | undefined {
    return this.#revocations.length === 0 ? undefined : writeRevocations(this.#revocations);
  }

  #sign({ scope, policy, text, atMs }: PolicyTuned, signer: Signer): SignedEnvelope {
    const { keyId, installation } = signer;
    const commandId = `tuned-${policy.version}`;
    const type = 'TUNE';
    const signature = {
      keyId,
      version: signatureVersion(installation),
      notAfter: Math.round(atMs) + VALID_MS,
      // what is signed names one text, which may be signed as often as there are leaders
      nonce: policy.digest,
    };
    const body = new TextEncoder().encode(text);
    const bytes = signer.sign(signedBytes({ ...signature, installation, commandId, scope, type, body }));
    return {
      commandId,
      scope,
      type,
      signature: { ...signature, bytes },
      coSignature: null,
      appendedMs: atMs,
    };
  }
}
