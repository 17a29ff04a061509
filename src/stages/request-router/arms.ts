import type { RoutableRequest } from '../../contracts/records.ts';
import { armOf, type RolloutUnit, saltsOf } from '../../core/rollout/bucket.ts';
import type { HeavyKeys } from '../../core/rollout/heavy-keys.ts';
import type { ActiveCanary, ActivePolicy } from './active-policy.ts';
import { type Decided, DecidingPolicy } from './deciding-policy.ts';

/**
 * Who decides a request: the stable policy or, for its share of the units, the canary. Where a bucket key keeps its arm, the heaviest are left out of
 * the analysis, in both arms: each of them would count as many requests that agree with each other.
 */
export class Arms {
  readonly stable: DecidingPolicy;
  /** Whatever is on its way to live, also where it only decides beside the stable policy. */
  readonly candidate: DecidingPolicy | undefined;
  readonly #heavyKeys: HeavyKeys;
  readonly #canary: ActiveCanary | undefined;
  readonly #unit: RolloutUnit;

  constructor(stable: ActivePolicy, canary: ActiveCanary | undefined, heavyKeys: HeavyKeys) {
    this.stable = new DecidingPolicy(stable);
    this.candidate = canary && new DecidingPolicy(canary.policy);
    this.#heavyKeys = heavyKeys;
    this.#canary = canary;
    this.#unit = { ...saltsOf(canary?.salt ?? ''), percent: canary?.mode === 'canary' ? canary.percent : 0 };
  }

  decide(request: RoutableRequest): Decided {
    if (this.#canary === undefined || this.candidate === undefined) return this.#byStable(request, true);
    const bucketKey = bucketKeyOf(request);
    // In shadow too, so that the heaviest are known by the time they matter.
    const isHeavy = bucketKey !== undefined && this.#heavyKeys.add(bucketKey);
    if (this.#unit.percent === 0) return this.#byStable(request, true);
    const isByRequest = this.#canary.unit === 'requestId';
    // who has no key is always the stable policy's: to count it would compare all of them with nobody
    const analysed = isByRequest || (bucketKey !== undefined && !isHeavy);
    if (armOf(this.#unit, isByRequest ? request.requestId : bucketKey) === 'STABLE')
      return this.#byStable(request, analysed);
    const leaf = this.candidate.decide(request);
    return { policy: this.candidate, leaf, arm: 'CANARY', analysed };
  }

  #byStable(request: RoutableRequest, analysed: boolean): Decided {
    return { policy: this.stable, leaf: this.stable.decide(request), arm: 'STABLE', analysed };
  }
}

/** Where a request names none, the extractor fills in its id: as a key that is none. */
function bucketKeyOf({ bucketKey, requestId }: RoutableRequest): string | undefined {
  return bucketKey === '' || bucketKey === requestId ? undefined : bucketKey;
}
