import type { LeafDivergence, RouterWindow } from '../../contracts/records.ts';
import { NO_WORKER_UTILISATION } from '../../core/rollout/projection.ts';
import { rounded } from './rounded.ts';
import type { CandidateLeaf, ShadowPool, ShadowReport, ShadowShares } from './shadow-report.ts';

const BUSIEST_SHARE = 0.1;

type Counted = Pick<LeafDivergence, 'requests' | 'changed' | 'latencyRatioOver'>;

/** The windows of all routers of one time: those of one number, as routers start together. */
interface Moment {
  windowMs: number;
  requests: number;
  readonly leaves: Map<string, Counted>;
  readonly pools: Map<string, number>;
}

/** What the windows of a shadow add up to, over the whole run and over its busiest windows. */
export class ShadowCounts {
  readonly #moments = new Map<number, Moment>();
  readonly #candidateLeaves = new Map<string, number>();
  #exceptions = 0;

  take({ shadow, shadowLeaves, shadowExceptions, projectedUtilisation, ...window }: RouterWindow): void {
    if (shadow.length === 0) return;
    this.#exceptions += shadowExceptions;
    for (const [leaf, requests] of Object.entries(shadowLeaves))
      this.#candidateLeaves.set(leaf, (this.#candidateLeaves.get(leaf) ?? 0) + requests);
    const moment = this.#momentOf(window.sequence);
    moment.windowMs = Math.max(moment.windowMs, window.windowMs);
    for (const leaf of shadow) {
      moment.requests += leaf.requests;
      moment.leaves.set(leaf.leaf, sum([moment.leaves.get(leaf.leaf) ?? NOTHING, leaf]));
    }
    for (const [pool, share] of Object.entries(projectedUtilisation))
      moment.pools.set(pool, (moment.pools.get(pool) ?? 0) + share);
  }

  /**
   * @param of all leaves of the candidate and all pools of the fleet, in order
   * @param hitsMin a leaf with fewer requests is seldom
   */
  report(
    of: { candidateLeaves: readonly string[]; pools: readonly string[] },
    hitsMin: number,
  ): Omit<ShadowReport, 'candidate' | 'rollout'> {
    const all = [...this.#moments.values()];
    const busiest = [...all]
      .sort((a, b) => perSecond(b) - perSecond(a))
      .slice(0, Math.max(1, Math.floor(BUSIEST_SHARE * all.length)));
    const totals = sharesOf(all);
    const names = [...new Set(all.flatMap(({ leaves }) => [...leaves.keys()]))];
    return {
      requests: totals.requests,
      exceptions: this.#exceptions,
      all: totals,
      busiest: sharesOf(busiest),
      leaves: names
        .map((leaf) => ({ leaf, all: sharesOf(all, leaf), busiest: sharesOf(busiest, leaf) }))
        .sort((a, b) => b.all.requests - a.all.requests || (a.leaf < b.leaf ? -1 : 1)),
      candidateLeaves: of.candidateLeaves.map((leaf) => this.#candidateLeaf(leaf, totals.requests, hitsMin)),
      pools: of.pools.map((pool) => poolOf(pool, all, busiest)),
    };
  }

  #candidateLeaf(leaf: string, of: number, hitsMin: number): CandidateLeaf {
    const requests = this.#candidateLeaves.get(leaf) ?? 0;
    return { leaf, requests, share: of === 0 ? 0 : rounded(requests / of), isSeldom: requests < hitsMin };
  }

  #momentOf(sequence: number): Moment {
    let moment = this.#moments.get(sequence);
    if (moment === undefined) {
      moment = { windowMs: 0, requests: 0, leaves: new Map(), pools: new Map() };
      this.#moments.set(sequence, moment);
    }
    return moment;
  }
}

const NOTHING: Counted = { requests: 0, changed: 0, latencyRatioOver: 0 };

function sum(counts: readonly Counted[]): Counted {
  return counts.reduce(
    (total, { requests, changed, latencyRatioOver }) => ({
      requests: total.requests + requests,
      changed: total.changed + changed,
      latencyRatioOver: total.latencyRatioOver + latencyRatioOver,
    }),
    NOTHING,
  );
}

function perSecond({ requests, windowMs }: Moment): number {
  return windowMs === 0 ? 0 : (requests * 1_000) / windowMs;
}

/** Of one leaf of the live policy, or of all. */
function sharesOf(moments: readonly Moment[], leaf?: string): ShadowShares {
  const counted = moments.map(({ leaves }) =>
    leaf === undefined ? sum([...leaves.values()]) : (leaves.get(leaf) ?? NOTHING),
  );
  const { requests, changed, latencyRatioOver } = sum(counted);
  const lastedMs = moments.reduce((total, { windowMs }) => total + windowMs, 0);
  const share = (part: number): number => (requests === 0 ? 0 : rounded(part / requests));
  return {
    requests,
    requestsPerSecond: lastedMs === 0 ? 0 : rounded((requests * 1_000) / lastedMs),
    changed: share(changed),
    latencyApart: share(latencyRatioOver),
  };
}

function poolOf(pool: string, all: readonly Moment[], busiest: readonly Moment[]): ShadowPool {
  return {
    pool,
    projected: projectedOf(all, pool),
    projectedBusiest: projectedOf(busiest, pool),
    windowsWithoutWorker: all.filter((moment) => !isServed(moment, pool)).length,
  };
}

function isServed({ pools }: Moment, pool: string): boolean {
  return (pools.get(pool) ?? 0) < NO_WORKER_UTILISATION;
}

/** Mean over the windows that had a worker, where the pool had nothing to do as well. */
function projectedOf(moments: readonly Moment[], pool: string): number | null {
  const served = moments.filter((moment) => isServed(moment, pool));
  const lastedMs = served.reduce((total, { windowMs }) => total + windowMs, 0);
  if (lastedMs === 0) return null;
  const work = served.reduce((total, { pools, windowMs }) => total + (pools.get(pool) ?? 0) * windowMs, 0);
  return rounded(work / lastedMs);
}
