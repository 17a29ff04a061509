import type { PublishedModel } from '../model/published-model.ts';
import type { RolloutCommand } from '../rollout/decide-rollout.ts';
import type { Observation } from '../rollout/observation.ts';
import type { RolloutTerms } from '../rollout/rollout-terms.ts';
import type { PublishedPolicy } from './published-policy.ts';

/** A policy that differs from its parent in tuned constants only. */
export interface ChildPolicy {
  readonly policy: PublishedPolicy;
  readonly text: string;
}

interface Sent {
  readonly commandId: string;
  readonly scope: string;
  readonly actor: string;
}

/** What a command asks for, after its body was read and checked. `atMs` is the controller's log time. */
export type ControllerCommand = Sent &
  (
    | {
        readonly kind: 'publish-policy';
        readonly policy: PublishedPolicy;
        /** `immediate`: live at once. `staged`: it waits for START. */
        readonly mode: 'immediate' | 'staged';
        /** The rollout that begins by itself where the mode is staged. */
        readonly start: { readonly terms: RolloutTerms; readonly atMs: number } | undefined;
      }
    | { readonly kind: 'publish-model'; readonly model: PublishedModel }
    | { readonly kind: 'roll-back'; readonly toVersion: number | undefined; readonly atMs: number }
    /** A higher epoch that means the same. `above`: an epoch that is in the store and not in the log. */
    | { readonly kind: 'reseed'; readonly above?: number }
    | RolloutCommand
    | {
        readonly kind: 'tune';
        readonly name: string;
        readonly value: number;
        /** The live policy with that constant moved. */
        readonly child: ChildPolicy;
        readonly atMs: number;
      }
    | { readonly kind: 'revoke-key'; readonly keyId: string }
    /** The border could not accept it: the reason goes into the log. */
    | { readonly kind: 'refused'; readonly reason: string }
  );

export type CommandKind<K extends ControllerCommand['kind']> = Extract<ControllerCommand, { kind: K }>;

/** An observation of a scope's rollout. Nobody sent it, and it acts only where it is newer than the last. */
export interface Look {
  readonly kind: 'look';
  readonly scope: string;
  readonly observation: Observation;
}

export type ControllerInput = ControllerCommand | Look;
