import type { PublishedModel } from '../model/published-model.ts';
import type { RolloutCause, RolloutEvent } from '../rollout/rollout-event.ts';
import type { RolloutTerms } from '../rollout/rollout-terms.ts';
import type { TuningEvent } from '../tuning/tuning-event.ts';
import type { PublishedPolicy } from './published-policy.ts';

/** What the log of control events holds. Each says everything that the state needs of it. */
export type ControllerEvent =
  | { type: 'leadership-taken'; term: number }
  | {
      type: 'policy-published';
      commandId: string;
      scope: string;
      actor: string;
      policy: PublishedPolicy;
      /** Whether it acts from now on, or waits for its rollout. */
      live: boolean;
      /** The rollout that begins by itself. */
      start: { terms: RolloutTerms; atMs: number } | undefined;
      epoch: number;
    }
  /** From now on workers fetch and check it. It serves only where a request or a policy names it. */
  | {
      type: 'model-published';
      commandId: string;
      scope: string;
      actor: string;
      model: PublishedModel;
      /** Of the catalogue's pointer. */
      epoch: number;
    }
  | {
      type: 'policy-rolled-back';
      commandId: string;
      scope: string;
      actor: string;
      from: PublishedPolicy;
      policy: PublishedPolicy;
      /** When, for the end of a rollout that ran. Events of older versions have 0. */
      atMs: number;
      epoch: number;
    }
  /**
   * Without a command: a new leader takes a running rollout over, or the store held what is not in the log, which routers may have followed. In the
   * scope `models` it is the catalogue's pointer.
   */
  | { type: 'store-reseeded'; commandId: string; scope: string; actor: string; epoch: number }
  | { type: 'command-refused'; commandId: string; scope: string; actor: string; reason: string }
  /** Signatures of this key count no more, from the command's place in the control log on. */
  | { type: 'key-revoked'; commandId: string; scope: string; actor: string; keyId: string }
  /** A constant of the live policy was moved, by a person or by the tuning: a child that nobody sent is live from now on. */
  | {
      type: 'policy-tuned';
      commandId: string;
      scope: string;
      actor: string;
      policy: PublishedPolicy;
      /** The child's exact text. */
      text: string;
      name: string;
      value: number;
      reason: string;
      atMs: number;
      epoch: number;
    }
  | (TuningEvent & RolloutCause)
  | RolloutEvent;

/** Actor of what the tuning decides by itself. */
export const TUNING = 'tuning';
