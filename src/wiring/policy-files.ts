import { createHash } from 'node:crypto';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
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

/** Accelerator class → its pools, dedicated ones first. */
export function poolsOf(fleet: Fleet): (accelerator: string) => readonly string[] {
  const pools = new Map(
    [...fleet.accelerators].map(([name, accelerator]) => [
      name,
      [...accelerator.pools]
        .sort((a, b) => Number(b.capacityClass === 'dedicated') - Number(a.capacityClass === 'dedicated'))
        .map((pool) => pool.pool),
    ]),
  );
  return (accelerator) => pools.get(accelerator) ?? [];
}

export interface PoolOfFleet {
  pool: string;
  accelerator: string;
  capacityClass: 'dedicated' | 'opportunistic';
  simulated: boolean;
}

/** Every pool of the fleet with the accelerator class that it is of. */
export function fleetPools(fleet: Fleet): PoolOfFleet[] {
  return [...fleet.accelerators].flatMap(([accelerator, { pools }]) =>
    pools.map((pool) => ({ ...pool, accelerator })),
  );
}

/** @throws MillraceError INVALID_CONFIG where the fleet has no such pool */
export function poolOf(fleet: Fleet, name: string): PoolOfFleet {
  const pools = fleetPools(fleet);
  const found = pools.find(({ pool }) => pool === name);
  if (found !== undefined) return found;
  throw new MillraceError('INVALID_CONFIG', 'the fleet has no such pool', {
    value: name,
    allowed: pools.map(({ pool }) => pool).join(', '),
  });
}
