import { createHash } from 'node:crypto';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { type CompiledPolicy, compilePolicy } from '../core/policy/compile.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { parsePolicy } from '../core/policy/parse.ts';
import { parseFleet } from '../core/policy/parse-fleet.ts';
import { DocumentError } from '../core/policy/problem.ts';
import { checkTunedOf } from '../core/policy/tuned-of.ts';
import { validatePolicy } from '../core/policy/validate.ts';
import { SIGNALS } from '../core/signals/extract.ts';
import type { ActivePolicy } from '../stages/request-router/active-policy.ts';

/** `sha256:<hex>` of the exact bytes. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

export function readFleet(settings: Settings): Fleet {
  return parseFleet(readUserFile(packaged(settings.fleet, 'examples', 'fleets', 'embedded.yaml')));
}

/**
 * Parses, validates against the fleet and compiles.
 * @param root of which the policy may differ in tuned constants only
 * @throws MillraceError INVALID_POLICY with every problem found
 */
export function compileChecked(bytes: Uint8Array, fleet: Fleet, root?: Uint8Array): CompiledPolicy {
  const document = parsePolicy(bytes);
  if (root !== undefined) checkTunedOf(root, bytes);
  const errors = validatePolicy(document, fleet, SIGNALS).filter((problem) => problem.severity === 'error');
  if (errors.length > 0) throw new DocumentError('INVALID_POLICY', errors);
  return compilePolicy(document, { fleet });
}

/** The policy in force until the store names another. */
export function readBuiltInPolicy(settings: Settings, fleet: Fleet): ActivePolicy {
  const bytes = readUserFile(packaged(settings.policy, 'examples', 'policies', 'starter.yaml'));
  const compiled = compileChecked(bytes, fleet);
  const { name, version } = compiled.document;
  return { ref: { digest: digestOf(bytes), name, version }, epoch: 0, compiled, source: 'built-in' };
}
