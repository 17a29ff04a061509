import type { CompiledPolicy } from '../../core/policy/compile.ts';
import type { PolicyRef } from '../../ports/control-store.ts';

/** The policy that a router runs, and how it came by it. */
export interface ActivePolicy {
  ref: PolicyRef;
  /** 0 for the policy that the router was built with. */
  epoch: number;
  compiled: CompiledPolicy;
  /** `built-in` until the store was heard, then `store`. */
  source: 'built-in' | 'store';
}
