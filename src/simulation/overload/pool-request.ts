import type { PricedWork, WorkPart } from '../../core/overload/priced-work.ts';

/** What a client asks for once, however often it sends it. */
export interface PoolRequest {
  readonly sentMs: number;
  readonly user: number;
  readonly base: WorkPart;
  readonly extras: readonly WorkPart[];
  /** Real service time over the predicted one. */
  readonly noise: number;
  /** 0 for the densest tenth of the requests to 9: the priority that controllers which know no value are told. */
  readonly densityTier: number;
  attempts: number;
  isAnswered: boolean;
}

/** One sending of a request; each has the whole SLA. */
export interface Attempt extends PricedWork {
  readonly request: PoolRequest;
  readonly arrivedMs: number;
  /** Its client has heard that it failed, or waits no longer. */
  isGivenUp: boolean;
}

/** Predicted service time of the base and the first `extras` steps, ms. */
export function costOf({ base, extras }: Pick<PricedWork, 'base' | 'extras'>, steps: number): number {
  let costMs = base.costMs;
  for (let step = 0; step < steps; step++) costMs += extras[step]?.costMs ?? 0;
  return costMs;
}

export function worthOf({ base, extras }: Pick<PricedWork, 'base' | 'extras'>, steps: number): number {
  let value = base.value;
  for (let step = 0; step < steps; step++) value += extras[step]?.value ?? 0;
  return value;
}
