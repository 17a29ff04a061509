import { DEFAULT_LIMITS, type RolloutLimits } from '../../core/rollout/rollout-terms.ts';
import type { TuningTerms } from '../../core/tuning/tuning-terms.ts';

export interface ControllerConfig {
  /** Name of this controller, the actor of its own events. */
  controller: string;
  /** Commands are accepted without a signature. One that has a signature which does not hold is refused all the same, where there are keys. */
  acceptUnsigned: boolean;
  rollout: RolloutConfig;
  /** By which constants are tuned; undefined where nothing moves by itself. */
  tuning: TuningTerms | undefined;
}

export interface RolloutConfig {
  /** What becomes of a published version: `staged` waits for START and goes live by stages, `immediate` is live at once. */
  mode: 'staged' | 'immediate';
  /** A published version is started by itself, where no other is on its way. */
  autoStart: boolean;
  /** A stage that passed goes on by itself; otherwise it waits for PROMOTE. START can say otherwise. */
  autoPromote: boolean;
  /** Proven harm ends in a rollback by itself; otherwise in a hold. START can say otherwise. */
  autoRollback: boolean;
  /** How often a running rollout is looked at. */
  lookMs: number;
  /** Routers leave a canary when they heard nothing for so long; it is renewed six times as often. */
  leaseMs: number;
  limits: RolloutLimits;
}

export const DEFAULT_ROLLOUT_CONFIG: RolloutConfig = {
  mode: 'staged',
  autoStart: false,
  autoPromote: false,
  autoRollback: true,
  lookMs: 10_000,
  leaseMs: 60_000,
  limits: DEFAULT_LIMITS,
};
