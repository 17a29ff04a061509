import type { CompiledPolicy } from '../../core/policy/compile.ts';
import type { CanaryPointer, PolicyRef } from '../../ports/control-store.ts';

/** A policy that a router runs, and how it came by it. */
export interface ActivePolicy {
  ref: PolicyRef;
  /** 0 for the policy that the router was built with. */
  epoch: number;
  compiled: CompiledPolicy;
  /** `built-in` until another was known, `last-known-good` until the store was heard, then `store`. */
  source: 'built-in' | 'last-known-good' | 'store';
}

/** The policy on its way to live while it is obeyed, and how much it decides. */
export interface ActiveCanary extends Pick<CanaryPointer, 'mode' | 'percent' | 'salt' | 'unit'> {
  policy: ActivePolicy;
}
