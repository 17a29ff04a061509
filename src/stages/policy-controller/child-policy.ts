import type { ChildPolicy } from '../../core/control/controller-command.ts';
import type { PublishedPolicy } from '../../core/control/published-policy.ts';
import { childOfStep } from '../../core/tuning/child-of-step.ts';
import type { CheckedPolicy } from './read-command.ts';

export interface ChildDeps {
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  /** Reads and validates a policy document. */
  checkPolicy(bytes: Uint8Array): CheckedPolicy;
}

/**
 * The live policy with one constant moved, as a version of its own.
 *
 * @throws MillraceError INVALID_POLICY: no such constant, a value out of its bounds, or a child that does not pass its own golden tests
 */
export function childPolicy(
  parentText: string,
  parent: PublishedPolicy,
  change: { name: string; to: number; version: number },
  { digest, checkPolicy }: ChildDeps,
): ChildPolicy {
  const text = childOfStep(parentText, parent.digest, change);
  const bytes = Buffer.from(text);
  const { name, version } = checkPolicy(bytes);
  return { text, policy: { digest: digest(bytes), name, version } };
}

/** Above every version that was published. */
export function nextVersion(published: readonly PublishedPolicy[]): number {
  return 1 + published.reduce((highest, { version }) => Math.max(highest, version), 0);
}
