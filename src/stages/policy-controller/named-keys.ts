import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { PolicyProofs } from './policy-proofs.ts';

export interface NamedKeysDeps {
  store: ControlStore;
  telemetry: Telemetry;
  /** The published text with this digest. */
  document(digest: string): Uint8Array | undefined;
  proofs: Pick<PolicyProofs, 'envelopeOf' | 'rootOf' | 'revocations'>;
}

/** What a router or worker must find beside a pointer: the texts that it names, who vouches for them, and which keys count no more. */
export class NamedKeys {
  readonly #deps: NamedKeysDeps;

  constructor(deps: NamedKeysDeps) {
    this.#deps = deps;
  }

  /** All of it, before the pointer itself is written. */
  async write(pointer: PolicyPointer): Promise<void> {
    const { store, document, proofs } = this.#deps;
    for (const digest of this.#digests(pointer)) {
      const [bytes, envelope] = [document(digest), proofs.envelopeOf(digest)];
      if (bytes !== undefined) await store.putDocument(digest, bytes);
      if (envelope !== undefined) await store.putEnvelope(digest, envelope);
    }
    await this.writeRevocations();
  }

  async writeRevocations(): Promise<void> {
    const { store, proofs } = this.#deps;
    const revocations = proofs.revocations();
    if (revocations !== undefined) await store.putRevocations(revocations);
  }

  /**
   * What the store lost one by one, by an eviction or a hand; and who vouches, or vouches no more, where a leader before wrote that late: these keys
   * have no term that would keep it out.
   */
  async restore(scope: string, pointer: PolicyPointer): Promise<void> {
    const lost: string[] = [];
    for (const digest of this.#digests(pointer)) lost.push(...(await this.#restoreOne(digest)));
    lost.push(...(await this.#restoreRevocations()));
    if (lost.length === 0) return;
    const what = { scope, epoch: pointer.epoch, lost };
    this.#deps.telemetry.logger.warn(what, 'the control store lost what a pointer needs; written again');
  }

  async #restoreOne(digest: string): Promise<string[]> {
    const { store, document, proofs } = this.#deps;
    const lost: string[] = [];
    const [bytes, envelope] = [document(digest), proofs.envelopeOf(digest)];
    if (bytes !== undefined && !(await store.hasDocument(digest))) {
      await store.putDocument(digest, bytes);
      lost.push(`document ${digest}`);
    }
    if (envelope !== undefined && !isSame(envelope, await store.readEnvelope(digest))) {
      await store.putEnvelope(digest, envelope);
      lost.push(`envelope ${digest}`);
    }
    return lost;
  }

  async #restoreRevocations(): Promise<string[]> {
    const { store, proofs } = this.#deps;
    const revocations = proofs.revocations();
    if (revocations === undefined || isSame(revocations, await store.readRevocations())) return [];
    await store.putRevocations(revocations);
    return ['revocations'];
  }

  #digests({ stable, canary }: PolicyPointer): Set<string> {
    const named = [stable, ...(canary === undefined ? [] : [canary.policy])].map(({ digest }) => digest);
    const roots = named.flatMap((digest) => this.#deps.proofs.rootOf(digest) ?? []);
    return new Set([...named, ...roots]);
  }
}

function isSame(bytes: Uint8Array, stored: Uint8Array | undefined): boolean {
  return stored !== undefined && Buffer.compare(bytes, stored) === 0;
}
