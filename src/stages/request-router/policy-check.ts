import { MillraceError } from '../../core/errors.ts';
import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { DOCUMENT_LIMITS } from '../../core/policy/source.ts';
import type { PolicyRef } from '../../ports/control-store.ts';
import type { SignatureTrust } from '../signature-trust.ts';
import { SignatureCheck } from './signature-check.ts';

export interface PolicyCheckOptions {
  /** `sha256:<hex>` of the exact bytes. */
  digest(bytes: Uint8Array): string;
  /**
   * Parses within the limits, validates, runs the golden tests, compiles: beside the event loop, where there is traffic to be held up.
   * @param root of which the policy may differ in tuned constants only; any where it is left out
   * @throws MillraceError INVALID_POLICY for the document; anything else says nothing about it
   */
  compile(bytes: Uint8Array, root?: Uint8Array): CompiledPolicy | Promise<CompiledPolicy>;
  /** Whom policies are taken from; from anybody where it is left out. */
  trust?: SignatureTrust | undefined;
  /** Whose pointer names the policies, such as `policy/feed-router`. */
  scope: string;
}

/** Where the text of a policy, and who vouches for it, are to be had by its digest: the store, or the disk. None of it is believed. */
export interface PolicySupply {
  document(digest: string): Promise<Uint8Array | undefined>;
  envelope(digest: string): Promise<Uint8Array | undefined>;
}

export type PolicyVerdict =
  | { status: 'passed'; compiled: CompiledPolicy }
  /** `lasting`: of these bytes, which the digest names, nothing else can ever come. */
  | { status: 'refused'; reason: string; lasting: boolean };

/** What a policy passed by, so that it passes again when it is all that there is. */
export interface Evidence {
  readonly documents: ReadonlyMap<string, Uint8Array>;
  readonly envelopes: ReadonlyMap<string, Uint8Array>;
}

interface Passed {
  compiled: CompiledPolicy;
  evidence: Evidence;
}

/** Nobody vouches for it, so that it cannot be run, for a reason that another answer of the store may mend. */
class Unproven extends Error {}

const PASSED_MAX = 4;
const REFUSED_MAX = 16;

/**
 * Everything that a document must pass before a router may run it: size, digest, signature, limits, types, golden tests. Verdicts are kept by digest, so
 * that a document is compiled once however often pointers name it, and a rollback swaps without compiling at all.
 */
export class PolicyCheck {
  readonly signatures: SignatureCheck | undefined;
  readonly #options: PolicyCheckOptions;
  /** The latest last. */
  readonly #passed = new Map<string, Passed>();
  readonly #refused = new Map<string, string>();

  constructor(options: PolicyCheckOptions) {
    this.#options = options;
    this.signatures = options.trust && new SignatureCheck(options.trust, options.scope);
  }

  /** The verdict on a document that was checked before, without its bytes. */
  known({ digest }: PolicyRef): PolicyVerdict | undefined {
    const passed = this.#passed.get(digest);
    if (passed !== undefined) {
      remember(this.#passed, digest, passed, PASSED_MAX);
      return { status: 'passed', compiled: passed.compiled };
    }
    const reason = this.#refused.get(digest);
    return reason === undefined ? undefined : { status: 'refused', reason, lasting: true };
  }

  async check({ digest }: PolicyRef, supply: PolicySupply): Promise<PolicyVerdict> {
    let isTuned = false;
    try {
      const bytes = await this.#textOf(digest, supply);
      const { root, evidence } = await this.#prove(digest, bytes, supply);
      isTuned = root !== undefined;
      const compiled = await this.#options.compile(bytes, root);
      remember(this.#passed, digest, { compiled, evidence }, PASSED_MAX);
      return { status: 'passed', compiled };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const isRefused = error instanceof MillraceError && error.code === 'INVALID_POLICY';
      // Another root may be named for the same text.
      if (!isRefused || isTuned) return { status: 'refused', reason, lasting: false };
      remember(this.#refused, digest, reason, REFUSED_MAX);
      return { status: 'refused', reason, lasting: true };
    }
  }

  /** What a document that passed lately passed by. */
  evidenceOf({ digest }: PolicyRef): Evidence | undefined {
    return this.#passed.get(digest)?.evidence;
  }

  /** @throws Unproven */
  async #textOf(digest: string, supply: PolicySupply): Promise<Uint8Array> {
    const bytes = await supply.document(digest);
    if (bytes === undefined) throw new Unproven(`the store has no document ${digest}`);
    if (bytes.byteLength > DOCUMENT_LIMITS.bytes)
      throw new Unproven(`the document has ${bytes.byteLength} bytes; allowed: ${DOCUMENT_LIMITS.bytes}`);
    if (this.#options.digest(bytes) !== digest)
      throw new Unproven('the document does not have the digest that the pointer names');
    return bytes;
  }

  /** Who vouches for the text and, where that is the controller, for the one that it was made of. @throws Unproven */
  async #prove(
    digest: string,
    bytes: Uint8Array,
    supply: PolicySupply,
  ): Promise<{ root: Uint8Array | undefined; evidence: Evidence }> {
    const documents = new Map([[digest, bytes]]);
    const envelopes = new Map<string, Uint8Array>();
    const evidence = { documents, envelopes };
    if (this.signatures === undefined) return { root: undefined, evidence };
    const checkOne = async (named: string, text: Uint8Array): Promise<string | undefined> => {
      const envelope = await supply.envelope(named);
      if (envelope !== undefined) envelopes.set(named, envelope);
      const checked = this.signatures?.verdict(text, envelope);
      if (checked?.status === 'refused') throw new Unproven(`signature: ${checked.reason}`);
      return checked?.root;
    };
    const rootDigest = await checkOne(digest, bytes);
    if (rootDigest === undefined) return { root: undefined, evidence };
    const root = await this.#textOf(rootDigest, supply);
    documents.set(rootDigest, root);
    if ((await checkOne(rootDigest, root)) !== undefined)
      throw new Unproven('signature: the policy that it was tuned from was not published by people');
    return { root, evidence };
  }
}

/** Keeps the latest `max` entries. */
function remember<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}
