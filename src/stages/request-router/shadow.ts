import { type LeafDivergence, makeLeafDivergence, type RoutableRequest } from '../../contracts/records.ts';
import { LatencySketch } from '../../core/latency/sketch.ts';
import type { Leaf } from '../../core/policy/compile.ts';
import { sameTarget } from '../../core/policy/diff.ts';
import { isApart, predictLatencyMs, projectUtilisation } from '../../core/rollout/projection.ts';
import type { PoolsOf, TargetChosen } from '../../core/routing/choose.ts';
import type { FleetState } from '../../core/routing/fleet-state.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DecidableRequest, Decided, DecidingPolicy } from './deciding-policy.ts';
import { modelWanted, predictedMsOf } from './wanted.ts';

/** One decision in so many is timed: reading the clock costs as much as deciding. */
const TIMED_EVERY = 16;

/** Workers score one request in so many once more by a candidate's model version, if they have the time. */
const VERSION_SAMPLED_EVERY = 4;

/** What a candidate in shadow would have done in one window. */
export interface ShadowWindow {
  shadow: LeafDivergence[];
  shadowExceptions: number;
  shadowCostSketch: Buffer;
  shadowLeaves: Record<string, number>;
  projectedUtilisation: Record<string, number>;
}

export interface ShadowSurroundings {
  fleet: FleetState;
  poolsOf: PoolsOf;
  clock: Pick<Clock, 'monotonicMs'>;
  /** See `RolloutLimits`. */
  latencyApartMin: number;
}

/** What of a request both policies decide by, and what its latency is predicted by. */
export type ShadowedRequest = DecidableRequest & Pick<RoutableRequest, 'model' | 'modelVersion'>;

/** Requests that end in one leaf of the stable policy and in one of the candidate. */
interface Pair {
  readonly from: Leaf;
  readonly to: Leaf;
  readonly isChanged: boolean;
  readonly isDeclared: boolean;
  requests: number;
  apart: number;
  /** Predicted work, ms at speed 1. */
  workMs: number;
}

/** Lets a candidate decide what the stable policy decided, and counts how they differ. It acts on nothing, and never throws. */
export class Shadow {
  readonly #stable: DecidingPolicy;
  readonly #candidate: DecidingPolicy;
  readonly #surroundings: ShadowSurroundings;
  /** By the index of the stable leaf × number of the candidate's leaves + index of the candidate's leaf. */
  readonly #pairs = new Map<number, Pair>();
  #decisions = 0;
  #sampled = 0;
  /** By leaf of the stable policy. */
  readonly #exceptions = new Map<string, number>();
  /** In microseconds. */
  #cost = new LatencySketch();
  #startedMs: number;

  constructor(stable: DecidingPolicy, candidate: DecidingPolicy, surroundings: ShadowSurroundings) {
    this.#stable = stable;
    this.#candidate = candidate;
    this.#surroundings = surroundings;
    this.#startedMs = surroundings.clock.monotonicMs();
  }

  observe(request: ShadowedRequest, decided: Pick<Decided, 'policy' | 'leaf'>): void {
    this.#decisions += 1;
    try {
      const isTimed = this.#decisions % TIMED_EVERY === 0;
      const leaf = isTimed
        ? this.#decideTimed(request)
        : this.#candidate.decideAfter(decided.policy, request);
      const pair = this.#pairOf(decided.leaf, leaf);
      pair.requests += 1;
      pair.workMs += predictedMsOf(request);
      if (pair.isChanged && this.#isApart(request, pair)) pair.apart += 1;
    } catch {
      const { id } = this.#stable.leafAt(decided.leaf);
      this.#exceptions.set(id, (this.#exceptions.get(id) ?? 0) + 1);
    }
  }

  /**
   * The version that would score the request if the candidate decided it, for every fourth request: where that is another one than the target's,
   * and the target's worker has it.
   */
  versionFor(request: ShadowedRequest, { slot, version }: TargetChosen): string | null {
    if (this.#candidate.document.models.size === 0 || request.modelVersion !== null) return null;
    this.#sampled += 1;
    if (this.#sampled % VERSION_SAMPLED_EVERY !== 0) return null;
    const wanted = this.#versionOf(request);
    if (wanted === undefined || wanted === version) return null;
    const { models } = slot.status;
    const isServed = models.some((each) => each.family === request.model && each.version === wanted);
    return isServed ? wanted : null;
  }

  #versionOf(request: ShadowedRequest): string | undefined {
    try {
      const leaf = this.#candidate.leafAt(this.#candidate.decide(request));
      return modelWanted(request, this.#candidate.document, leaf).version;
    } catch {
      // counted where the request was observed
      return undefined;
    }
  }

  /** The counts so far; counting starts at 0 again. */
  take(): ShadowWindow {
    const { fleet, poolsOf, clock } = this.#surroundings;
    const nowMs = clock.monotonicMs();
    const pairs = [...this.#pairs.values()];
    const work = pairs.map(({ to, workMs }) => ({ target: this.#candidate.targetAt(to.index), workMs }));
    const windowMs = nowMs - this.#startedMs;
    const taken = {
      shadow: this.#divergence(pairs),
      shadowExceptions: [...this.#exceptions.values()].reduce((sum, each) => sum + each, 0),
      shadowCostSketch: this.#cost.toBytes(),
      shadowLeaves: leavesHit(pairs),
      projectedUtilisation: projectUtilisation(fleet, poolsOf, work, windowMs, nowMs),
    };
    this.#pairs.clear();
    this.#exceptions.clear();
    this.#cost = new LatencySketch();
    this.#startedMs = nowMs;
    return taken;
  }

  /** A request on which the candidate threw counts as seen, and as not changed. */
  #divergence(pairs: readonly Pair[]): LeafDivergence[] {
    const byLeaf = new Map<string, LeafDivergence>();
    const countedOf = (leaf: string): LeafDivergence => {
      const counted =
        byLeaf.get(leaf) ?? makeLeafDivergence({ leaf, requests: 0, changed: 0, latencyRatioOver: 0 });
      byLeaf.set(leaf, counted);
      return counted;
    };
    for (const pair of pairs) addPair(countedOf(pair.from.id), pair);
    for (const [leaf, requests] of this.#exceptions) countedOf(leaf).requests += requests;
    return [...byLeaf.values()];
  }

  #decideTimed(request: DecidableRequest): number {
    const { clock } = this.#surroundings;
    const startedMs = clock.monotonicMs();
    const leaf = this.#candidate.decide(request);
    this.#cost.add((clock.monotonicMs() - startedMs) * 1_000);
    return leaf;
  }

  #pairOf(stableLeaf: number, candidateLeaf: number): Pair {
    const key = stableLeaf * this.#candidate.leaves.length + candidateLeaf;
    let pair = this.#pairs.get(key);
    if (pair === undefined) {
      pair = this.#newPair(this.#stable.leafAt(stableLeaf), this.#candidate.leafAt(candidateLeaf));
      this.#pairs.set(key, pair);
    }
    return pair;
  }

  /** A candidate without `expect` declares nothing; one whose `expect` names no leaves declares all of them. */
  #newPair(from: Leaf, to: Leaf): Pair {
    const { expect } = this.#candidate.active.compiled.document;
    const isDeclared = expect !== undefined && (expect.leaves === undefined || expect.leaves.includes(to.id));
    return { from, to, isChanged: !sameTarget(from, to), isDeclared, requests: 0, apart: 0, workMs: 0 };
  }

  #isApart(request: ShadowedRequest, { from, to }: Pair): boolean {
    const { fleet, poolsOf, clock, latencyApartMin } = this.#surroundings;
    const nowMs = clock.monotonicMs();
    const predict = (policy: DecidingPolicy, leaf: Leaf): number | undefined =>
      predictLatencyMs(
        fleet,
        poolsOf,
        policy.targetAt(leaf.index),
        modelWanted(request, policy.document, leaf),
        predictedMsOf(request),
        nowMs,
      );
    return isApart(predict(this.#stable, from), predict(this.#candidate, to), latencyApartMin);
  }
}

function addPair(counted: LeafDivergence, { isChanged, isDeclared, requests, apart }: Pair): void {
  counted.requests += requests;
  if (!isChanged) return;
  counted.changed += requests;
  counted.latencyRatioOver += apart;
  if (isDeclared) return;
  counted.changedUndeclared += requests;
  counted.latencyRatioOverUndeclared += apart;
}

function leavesHit(pairs: readonly Pair[]): Record<string, number> {
  const hit = new Map<string, number>();
  for (const { to, requests } of pairs) hit.set(to.id, (hit.get(to.id) ?? 0) + requests);
  return Object.fromEntries(hit);
}
