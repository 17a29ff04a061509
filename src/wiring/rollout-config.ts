import type { Settings } from '../config/settings.ts';
import type { RolloutConfig } from '../stages/policy-controller/controller-config.ts';

/** How rollouts go, by the settings. */
export function rolloutConfig({
  controller,
  guardrails,
}: Pick<Settings, 'controller' | 'guardrails'>): RolloutConfig {
  const { rollout, autoStart, autoPromote, autoRollback, lookMs, leaseMs, shadowRequestsMin } = controller;
  const mode = rollout === 'auto' ? 'staged' : rollout;
  // whoever lets a shadow end on fewer requests wants it judged on them
  const shareRequestsMin = Math.min(guardrails.shareRequestsMin, shadowRequestsMin);
  const limits = { ...guardrails, shadowRequestsMin, shareRequestsMin };
  return { mode, autoStart, autoPromote, autoRollback, lookMs, leaseMs, limits };
}
