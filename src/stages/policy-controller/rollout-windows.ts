import type { PoolStatus, RouterWindow, WorkerWindow } from '../../contracts/records.ts';
import { LatencySketch } from '../../core/latency/sketch.ts';
import type { ArmObservation, Observation, ShadowObservation } from '../../core/rollout/observation.ts';
import { ProjectedPools } from './projected-pools.ts';
import { ScoreWindows } from './score-windows.ts';
import { SeenWindows } from './seen-windows.ts';
import { WorkerKinds } from './worker-kinds.ts';

/** Which rollout is watched, and under which epoch its stage runs: what was decided under another one is not counted. */
export interface Watched {
  /** Name of the policy. */
  policy: string;
  epoch: number;
  candidateDigest: string;
  /** `family@version` of what the policies of both arms name. */
  models: readonly string[];
  /** Pools of the leaves of both policies, their fallbacks included. */
  pools: readonly string[];
  /** By head, what the scores of the stage are counted between, where that is settled: see `HeadScores`. */
  scoreEdges: Readonly<Record<string, readonly number[]>>;
}

type Arm = WorkerWindow['arm'];

interface ArmCounts {
  outcomes: Map<string, number>;
  late: number;
  endToEnd: LatencySketch;
}

type ShadowCounts = Omit<ShadowObservation, 'costUsP99' | 'leaves' | 'projectedUtilisation'> & {
  cost: LatencySketch;
  leaves: Map<string, number>;
  /** Of each router: its own requests' part of each pool, over all its windows. A single one may hold a burst. */
  projected: Map<string, ProjectedPools>;
};

interface PoolCounts {
  busy: { sum: number; beats: number };
  queue: LatencySketch;
}

/** τ are quantiles of the control: from fewer requests p99 means nothing. */
const FREEZE_REQUESTS_MIN = 200;
const QUANTILES = [0.5, 0.95, 0.99] as const;

/**
 * Merges the windows of routers and workers into what a rollout is judged by. Windows may come late, twice, or out of order; each counts once,
 * in the look that comes next, and only under the epoch that it was decided under.
 */
export class RolloutWindows {
  readonly #digest: (text: string) => string;
  #watched: Watched = { policy: '', epoch: -1, candidateDigest: '', models: [], pools: [], scoreEdges: {} };
  #arms: Record<Arm, ArmCounts> = { STABLE: newArm(), CANARY: newArm() };
  #shadow: ShadowCounts | undefined;
  #pools = new Map<string, PoolCounts>();
  readonly #scores = new ScoreWindows();
  readonly #workers = new WorkerKinds();
  readonly #seen = new SeenWindows();
  /** p50, p95, p99 of the control when the stage began to be watched. */
  #tausMs: readonly [number, number, number] | undefined;
  #freezing = new LatencySketch();
  #sinceMs: number | undefined;

  /** @param digest shortens the fingerprint */
  constructor(digest: (text: string) => string) {
    this.#digest = digest;
  }

  takeRouterWindow(window: RouterWindow): void {
    if (!this.#seen.isNew(window.router, window.sequence)) return;
    const { epoch, candidateDigest } = this.#watched;
    if (window.policyEpoch !== epoch || window.candidateDigest !== candidateDigest) return;
    const cost = LatencySketch.fromBytes(window.shadowCostSketch);
    for (const { arm, analysed, outcomes } of window.arms) {
      if (analysed) addCounts(this.#arms[arm].outcomes, outcomes);
    }
    if (window.shadow.length > 0) this.#takeShadow(window, cost);
  }

  takeWorkerWindow(window: WorkerWindow): void {
    if (!this.#seen.isNew(`${window.worker} ${window.incarnation}`, window.sequence)) return;
    // What cannot be read counts for nothing, not for half.
    const queue = LatencySketch.fromBytes(window.queueSketch);
    const endToEnd = LatencySketch.fromBytes(window.endToEndSketch);
    this.#poolOf(window.pool).queue.merge(queue);
    const { epoch, policy } = this.#watched;
    if (window.policyEpoch !== epoch || window.policy !== policy) return;
    if (window.shadow) this.#scores.take(window);
    if (window.shadow || !window.analysed) return;
    const counts = this.#arms[window.arm];
    addCounts(counts.outcomes, window.outcomes);
    this.#scores.take(window);
    counts.late += window.late;
    counts.endToEnd.merge(endToEnd);
  }

  takeStatus(status: PoolStatus, nowMs: number): void {
    this.#workers.take(status, nowMs);
    const { busy } = this.#poolOf(status.pool);
    busy.sum += status.utilisation;
    busy.beats += 1;
  }

  workerGone(worker: string): void {
    this.#workers.gone(worker);
  }

  /**
   * What was seen since the last look at this stage; undefined at its first, from which on it is counted.
   * @param nowMs monotonic
   * @param atMs when, for the log
   */
  observe(
    watched: Watched,
    nowMs: number,
    atMs: number,
    refusals: readonly string[],
  ): Observation | undefined {
    const sinceMs = this.#sinceMs;
    if (!isSame(this.#watched, watched) || sinceMs === undefined) {
      this.#begin(watched, nowMs);
      return undefined;
    }
    const observation: Observation = {
      atMs,
      windowMs: nowMs - sinceMs,
      stable: this.#observeArm('STABLE'),
      canary: this.#observeArm('CANARY'),
      stableLatencyMs: quantiles(this.#arms.STABLE.endToEnd),
      shadow: this.#observeShadow(),
      pools: Object.fromEntries([...this.#pools].map(([pool, counts]) => [pool, observePool(counts)])),
      scores: this.#scores.observe(),
      metrics: {},
      fingerprint: this.#fingerprint(nowMs),
      refusals,
      modelsNotReady: [],
    };
    this.#freeze();
    this.#clear(nowMs);
    return observation;
  }

  #begin(watched: Watched, nowMs: number): void {
    this.#watched = watched;
    this.#tausMs = undefined;
    this.#freezing = new LatencySketch();
    this.#scores.begin(watched.scoreEdges);
    this.#fingerprint(nowMs);
    this.#clear(nowMs);
  }

  #clear(nowMs: number): void {
    this.#arms = { STABLE: newArm(), CANARY: newArm() };
    this.#shadow = undefined;
    this.#pools = new Map();
    this.#sinceMs = nowMs;
  }

  /** Before a window is counted over τ, never by the window itself. */
  #freeze(): void {
    if (this.#tausMs !== undefined) return;
    this.#freezing.merge(this.#arms.STABLE.endToEnd);
    if (this.#freezing.count >= FREEZE_REQUESTS_MIN) this.#tausMs = quantiles(this.#freezing);
  }

  #observeArm(arm: Arm): ArmObservation {
    const { outcomes, late, endToEnd } = this.#arms[arm];
    const of = (outcome: string): number => outcomes.get(outcome) ?? 0;
    const over = (index: 0 | 1 | 2): number =>
      this.#tausMs === undefined ? 0 : endToEnd.countOver(this.#tausMs[index]);
    return {
      requests: [...outcomes.values()].reduce((sum, count) => sum + count, 0),
      // an answer by another kernel than the policy named is the policy's fault
      errors: of('REJECTED') + of('DEGRADED'),
      deadLettered: of('DEAD_LETTERED'),
      deadlineMissed: of('EXPIRED') + late,
      over: [over(0), over(1), over(2)],
    };
  }

  #takeShadow(window: RouterWindow, windowCost: LatencySketch): void {
    const shadow = this.#shadow ?? newShadow();
    const sum = (of: (leaf: RouterWindow['shadow'][number]) => number): number =>
      window.shadow.reduce((total, leaf) => total + of(leaf), 0);
    const cost = shadow.cost;
    cost.merge(windowCost);
    addCounts(shadow.leaves, window.shadowLeaves);
    const projected = shadow.projected.get(window.router) ?? new ProjectedPools();
    projected.take(window.projectedUtilisation);
    shadow.projected.set(window.router, projected);
    this.#shadow = {
      ...shadow,
      requests: shadow.requests + sum(({ requests }) => requests),
      changed: shadow.changed + sum(({ changed }) => changed),
      changedOutsideDeclared:
        shadow.changedOutsideDeclared + sum(({ changedUndeclared }) => changedUndeclared),
      latencyApart: shadow.latencyApart + sum(({ latencyRatioOverUndeclared }) => latencyRatioOverUndeclared),
      exceptions: shadow.exceptions + window.shadowExceptions,
    };
  }

  #observeShadow(): ShadowObservation | undefined {
    if (this.#shadow === undefined) return undefined;
    const { cost, leaves, projected, ...counts } = this.#shadow;
    const utilisation = new Map<string, number>();
    for (const pools of projected.values())
      for (const [pool, share] of pools.means()) utilisation.set(pool, (utilisation.get(pool) ?? 0) + share);
    return {
      ...counts,
      costUsP99: cost.quantileMs(0.99),
      leaves: Object.fromEntries(leaves),
      projectedUtilisation: Object.fromEntries(utilisation),
    };
  }

  #fingerprint(nowMs: number): string {
    const { pools, models } = this.#watched;
    const kinds = this.#workers.describe(pools, models, nowMs);
    return kinds === '' ? '' : this.#digest(`${[...pools].sort().join(' ')}\n${kinds}`);
  }

  #poolOf(pool: string): PoolCounts {
    let counts = this.#pools.get(pool);
    if (counts === undefined) {
      counts = { busy: { sum: 0, beats: 0 }, queue: new LatencySketch() };
      this.#pools.set(pool, counts);
    }
    return counts;
  }
}

function newArm(): ArmCounts {
  return { outcomes: new Map(), late: 0, endToEnd: new LatencySketch() };
}

function newShadow(): ShadowCounts {
  return {
    requests: 0,
    changed: 0,
    changedOutsideDeclared: 0,
    latencyApart: 0,
    exceptions: 0,
    cost: new LatencySketch(),
    leaves: new Map(),
    projected: new Map(),
  };
}

function addCounts(into: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [key, count] of Object.entries(counts)) into.set(key, (into.get(key) ?? 0) + count);
}

function observePool({ busy, queue }: PoolCounts): Observation['pools'][string] {
  return {
    utilisation: busy.beats === 0 ? 0 : busy.sum / busy.beats,
    queueMsP99: queue.quantileMs(0.99),
  };
}

function quantiles(sketch: LatencySketch): readonly [number, number, number] | undefined {
  if (sketch.count === 0) return undefined;
  const [p50, p95, p99] = QUANTILES;
  return [sketch.quantileMs(p50), sketch.quantileMs(p95), sketch.quantileMs(p99)];
}

function isSame(a: Watched, b: Watched): boolean {
  return a.policy === b.policy && a.epoch === b.epoch && a.candidateDigest === b.candidateDigest;
}
