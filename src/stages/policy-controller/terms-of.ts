import { leafBranches, type PolicyDocument } from '../../core/policy/document.ts';
import { type RolloutTerms, stagesOf } from '../../core/rollout/rollout-terms.ts';
import type { RolloutConfig } from './controller-config.ts';

/** What a rollout of this policy is started with: its own plan, and the limits of the settings where it names none. */
export function termsOf(
  { rollout, expect, tree }: Pick<PolicyDocument, 'rollout' | 'expect' | 'tree'>,
  config: RolloutConfig,
): RolloutTerms {
  const { leaseMs, autoPromote, autoRollback } = config;
  const { scorePsiMax, scoreMeanShiftMax, queries } = rollout.guardrails;
  const limits = {
    ...config.limits,
    scorePsiMax: scorePsiMax ?? config.limits.scorePsiMax,
    scoreMeanShiftMax: scoreMeanShiftMax ?? config.limits.scoreMeanShiftMax,
  };
  return {
    stages: stagesOf(rollout),
    unit: rollout.unit,
    leaseMs,
    leaves: leafBranches(tree).map(({ id }) => id),
    waivedLeaves: [],
    expect,
    limits,
    queries,
    autoPromote,
    autoRollback,
  };
}
