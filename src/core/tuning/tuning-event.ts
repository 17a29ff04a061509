import type { Direction, TuningObservation } from './tuning-observation.ts';
import type { TuningTerms } from './tuning-terms.ts';

/** `away`: off a domain that degrades. `back`: towards home, since the domain recovered. `probe`: one step towards home, to see. */
export const STEP_KINDS = ['away', 'back', 'probe'] as const;
export type StepKind = (typeof STEP_KINDS)[number];

/** What the log holds of the tuning of a policy. Times are the controller's log time, ms. */
export type TuningEvent =
  | { readonly type: 'tuning-looked'; readonly observation: TuningObservation; readonly terms: TuningTerms }
  | {
      readonly type: 'tuning-stepped';
      readonly name: string;
      readonly kind: StepKind;
      readonly direction: Direction;
      readonly from: number;
      readonly to: number;
      /** The domain that the step is about. */
      readonly domain: string;
      /** Version of the child policy. */
      readonly version: number;
      readonly reason: string;
      readonly atMs: number;
    }
  /** A step did not help: there is none until then. */
  | {
      readonly type: 'tuning-backed-off';
      readonly name: string;
      readonly periods: number;
      readonly reason: string;
      readonly atMs: number;
    };

export type TuningStepped = Extract<TuningEvent, { type: 'tuning-stepped' }>;
