import { MillraceError } from '../../core/errors.ts';
import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { DOCUMENT_LIMITS } from '../../core/policy/source.ts';
import type { PolicyRef } from '../../ports/control-store.ts';

export interface PolicyCheckOptions {
  /** `sha256:<hex>` of the exact bytes. */
  digest(bytes: Uint8Array): string;
  /**
   * Parses within the limits, validates, runs the golden tests, compiles: beside the event loop, where there is traffic to be held up.
   * @throws MillraceError INVALID_POLICY for the document; anything else says nothing about it
   */
  compile(bytes: Uint8Array): CompiledPolicy | Promise<CompiledPolicy>;
}

export type PolicyVerdict =
  | { status: 'passed'; compiled: CompiledPolicy }
  /** `lasting`: of these bytes, which the digest names, nothing else can ever come. */
  | { status: 'refused'; reason: string; lasting: boolean };

interface Passed {
  compiled: CompiledPolicy;
  bytes: Uint8Array;
}

const PASSED_MAX = 4;
const REFUSED_MAX = 16;

/**
 * Everything that a document must pass before a router may run it: size, digest, limits, types, golden tests. Verdicts are kept by digest, so
 * that a document is compiled once however often pointers name it, and a rollback swaps without compiling at all.
 */
export class PolicyCheck {
  readonly #options: PolicyCheckOptions;
  /** The latest last. */
  readonly #passed = new Map<string, Passed>();
  readonly #refused = new Map<string, string>();

  constructor(options: PolicyCheckOptions) {
    this.#options = options;
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

  async check(ref: PolicyRef, bytes: Uint8Array | undefined): Promise<PolicyVerdict> {
    const passing = (reason: string): PolicyVerdict => ({ status: 'refused', reason, lasting: false });
    if (bytes === undefined) return passing(`the store has no document ${ref.digest}`);
    if (bytes.byteLength > DOCUMENT_LIMITS.bytes)
      return passing(`the document has ${bytes.byteLength} bytes; allowed: ${DOCUMENT_LIMITS.bytes}`);
    if (this.#options.digest(bytes) !== ref.digest)
      return passing('the document does not have the digest that the pointer names');
    try {
      const compiled = await this.#options.compile(bytes);
      remember(this.#passed, ref.digest, { compiled, bytes }, PASSED_MAX);
      return { status: 'passed', compiled };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!(error instanceof MillraceError) || error.code !== 'INVALID_POLICY') return passing(reason);
      remember(this.#refused, ref.digest, reason, REFUSED_MAX);
      return { status: 'refused', reason, lasting: true };
    }
  }

  /** The bytes of a document that passed lately. */
  bytesOf({ digest }: PolicyRef): Uint8Array | undefined {
    return this.#passed.get(digest)?.bytes;
  }
}

/** Keeps the latest `max` entries. */
function remember<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}
