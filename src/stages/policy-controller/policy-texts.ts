import { namedAccelerators, namedModels } from '../../core/policy/document.ts';
import type { CheckedPolicy } from './read-command.ts';

/** Texts that this controller read, by their digest; each is read once. */
export class PolicyTexts {
  readonly #document: (digest: string) => Uint8Array | undefined;
  readonly #check: (bytes: Uint8Array) => CheckedPolicy;
  #read = new Map<string, CheckedPolicy | undefined>();

  constructor(
    document: (digest: string) => Uint8Array | undefined,
    check: (bytes: Uint8Array) => CheckedPolicy,
  ) {
    this.#document = document;
    this.#check = check;
  }

  /** Undefined for a text that is not known, or that this controller would refuse now. */
  policy(digest: string): CheckedPolicy | undefined {
    const bytes = this.#read.has(digest) ? undefined : this.#document(digest);
    if (bytes === undefined) return this.#read.get(digest);
    let policy: CheckedPolicy | undefined;
    try {
      policy = this.#check(bytes);
    } catch {
      policy = undefined;
    }
    this.#read.set(digest, policy);
    return policy;
  }

  /** `family@version` of what it names. */
  named(digest: string): readonly string[] {
    const policy = this.policy(digest);
    return policy === undefined ? [] : namedModels(policy);
  }

  /** Accelerator classes that it sends requests to. */
  accelerators(digest: string): readonly string[] {
    const policy = this.policy(digest);
    return policy === undefined ? [] : namedAccelerators(policy);
  }

  /** Only these are asked for from now on. */
  keep(digests: ReadonlySet<string>): void {
    this.#read = new Map([...this.#read].filter(([digest]) => digests.has(digest)));
  }
}
