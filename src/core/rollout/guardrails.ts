import { own } from '../own.ts';
import type { Observation } from './observation.ts';
import { percent, reasonOf } from './reason-text.ts';
import type { HoldReason } from './rollout-event.ts';
import type { RolloutState } from './rollout-state.ts';

type Pools = Observation['pools'];

/**
 * Bounds that hold whatever the comparison of the arms says: a canary on shared pools harms its control too, and comparing alone would not see
 * it. A breach is a hold.
 */
export function guardrailReasons(rollout: RolloutState): HoldReason[] {
  return [
    ...poolReasons(rollout),
    ...burnReasons(rollout),
    ...refusalReasons(rollout),
    ...modelReasons(rollout),
  ];
}

/** In how many looks one after another each pool was over its limits, this one included. */
export function countBreaches(rollout: RolloutState, pools: Pools): Record<string, number> {
  const breaches: Record<string, number> = {};
  for (const [pool, now] of Object.entries(pools)) {
    const limits = poolLimits(rollout, pool);
    const over = [
      [`pool-queue:${pool}`, now.queueMsP99 > limits.queueMsP99],
      [`pool-utilisation:${pool}`, now.utilisation > limits.utilisation],
    ] as const;
    for (const [key, isOver] of over) if (isOver) breaches[key] = (own(rollout.breaches, key) ?? 0) + 1;
  }
  return breaches;
}

function poolLimits(rollout: RolloutState, pool: string): { queueMsP99: number; utilisation: number } {
  const { queueFactorMax, queueMsFloor, utilisationFactorMax, utilisationFloor } = rollout.terms.limits;
  const start = own(rollout.baseline, pool);
  return {
    queueMsP99: Math.max(queueMsFloor, (start?.queueMsP99 ?? 0) * queueFactorMax),
    utilisation: Math.max(utilisationFloor, (start?.utilisation ?? 0) * utilisationFactorMax),
  };
}

function poolReasons(rollout: RolloutState): HoldReason[] {
  const pools = rollout.lastLook?.pools ?? {};
  const { breachLooks } = rollout.terms.limits;
  const isBreached = (key: string): boolean => (own(rollout.breaches, key) ?? 0) >= breachLooks;
  const queues: string[] = [];
  const busy: string[] = [];
  for (const [pool, now] of Object.entries(pools)) {
    const start = own(rollout.baseline, pool);
    if (isBreached(`pool-queue:${pool}`))
      queues.push(`${pool} ${tenths(now.queueMsP99)} ms, ${tenths(start?.queueMsP99 ?? 0)} ms at the start`);
    if (isBreached(`pool-utilisation:${pool}`))
      busy.push(`${pool} ${percent(now.utilisation)}, ${percent(start?.utilisation ?? 0)} at the start`);
  }
  return [
    ...reasonOf('pool-queue', queues, 'requests queue longer (p99) than when the stage began'),
    ...reasonOf('pool-utilisation', busy, 'pools are busier than when the stage began'),
  ];
}

function burnReasons({ burn, terms }: RolloutState): HoldReason[] {
  const { successObjective, burnRateMax, burnRequestsMin } = terms.limits;
  const shareMax = (1 - successObjective) * burnRateMax;
  if (burn.lastShare <= shareMax) return [];
  const text = `${percent(burn.lastShare)} of the requests compared, of either arm, failed or missed their deadline; at most ${percent(shareMax)} may. Counted anew with every ${burnRequestsMin} of them`;
  return [{ code: 'slo-burn', text }];
}

function refusalReasons({ lastLook }: RolloutState): HoldReason[] {
  return reasonOf('router-refusal', lastLook?.refusals ?? [], 'routers refuse the policy');
}

function modelReasons({ lastLook }: RolloutState): HoldReason[] {
  const problems = lastLook?.modelsNotReady ?? [];
  return reasonOf('model-not-ready', problems, 'model versions that the policy names cannot serve');
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
