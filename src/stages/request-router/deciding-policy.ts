import type { PolicyDecision, RoutableRequest } from '../../contracts/records.ts';
import type { Leaf } from '../../core/policy/compile.ts';
import type { PolicyDocument } from '../../core/policy/document.ts';
import { explainDecision } from '../../core/policy/explain.ts';
import type { TargetWanted } from '../../core/routing/choose.ts';
import type { ActivePolicy } from './active-policy.ts';

/** What of a request a policy decides by. */
export type DecidableRequest = Pick<RoutableRequest, 'signals' | 'context'>;

/** A policy with what it takes to decide a request by it. */
export class DecidingPolicy {
  readonly active: ActivePolicy;
  readonly leaves: readonly Leaf[];
  /** Of each leaf. */
  readonly #targets: readonly TargetWanted[];
  readonly #vector: Float64Array;
  #compared: { other: DecidingPolicy; isSame: boolean } | undefined;

  constructor(active: ActivePolicy) {
    this.active = active;
    this.leaves = active.compiled.leaves;
    this.#targets = this.leaves.map((leaf) => ({ ...leaf.target, fallback: leaf.fallback }));
    this.#vector = new Float64Array(active.compiled.signalNames.length);
  }

  get document(): PolicyDocument {
    return this.active.compiled.document;
  }

  /** Index of the leaf. */
  decide(request: DecidableRequest): number {
    const { compiled } = this.active;
    const vector = this.#vector;
    const names = compiled.signalNames;
    // What every object has by a name, such as toString, is no number: it is missing in the vector.
    for (let i = 0; i < names.length; i += 1) vector[i] = request.signals[names[i] ?? ''] ?? Number.NaN;
    return compiled.decide(vector, request.context);
  }

  /**
   * Decides a request that `other` decided just before. Looking up signals by their names is most of a decision: two policies that test the same
   * ones look them up once.
   */
  decideAfter(other: DecidingPolicy, request: DecidableRequest): number {
    if (!this.#testsSignalsOf(other)) return this.decide(request);
    this.#vector.set(other.#vector);
    return this.active.compiled.decide(this.#vector, request.context);
  }

  #testsSignalsOf(other: DecidingPolicy): boolean {
    if (this.#compared?.other !== other) {
      const [own, others] = [this, other].map(({ active }) => active.compiled.signalNames.join());
      this.#compared = { other, isSame: own === others };
    }
    return this.#compared.isSame;
  }

  leafAt(index: number): Leaf {
    const leaf = this.leaves[index];
    if (leaf === undefined) throw new Error(`leaf ${index} is not in the policy`);
    return leaf;
  }

  targetAt(index: number): TargetWanted {
    const target = this.#targets[index];
    if (target === undefined) throw new Error(`leaf ${index} is not in the policy`);
    return target;
  }

  /** The path that the request takes, for people. */
  explain(request: RoutableRequest): ReturnType<typeof explainDecision> {
    this.decide(request);
    return explainDecision(this.active.compiled, this.#vector, request.context);
  }
}

/** What was decided for one request, and by whom. */
export interface Decided {
  readonly policy: DecidingPolicy;
  /** Index into the policy's leaves. */
  readonly leaf: number;
  readonly arm: PolicyDecision['arm'];
  /** Whether the statistics of a rollout count the request. */
  readonly analysed: boolean;
}

/** As it goes with the dispatch. */
export function decisionOf({ policy, leaf, arm, analysed }: Decided): PolicyDecision {
  const { ref, epoch } = policy.active;
  return {
    digest: ref.digest,
    name: ref.name,
    version: ref.version,
    epoch,
    leaf: policy.leafAt(leaf).id,
    arm,
    analysed,
  };
}
