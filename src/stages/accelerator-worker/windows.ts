import {
  type Dispatch,
  makeWorkerWindow,
  type OutcomeKind,
  type WorkerWindow,
} from '../../contracts/records.ts';
import { LatencySketch } from '../../core/latency/sketch.ts';
import { keyGroupOf } from '../../core/scores/key-group.ts';
import type { ItemScores } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RandomStream } from '../../ports/random.ts';
import { HeadScores } from './head-scores.ts';
import { countWithin, type LastStage, lastStageOf } from './last-stage.ts';
import type { Computed } from './results.ts';
import type { WorkerJob } from './worker-job.ts';

/** What was decided alike in the window that is open: kernel, memory, model version, variant, policy, epoch, arm, analysed or not. */
interface OpenWindow {
  kernel: string;
  memory: string;
  model: string;
  modelVersion: string;
  variant: Dispatch['variant'];
  arm: Dispatch['policy']['arm'];
  analysed: boolean;
  /** Of a version on its way to live, on requests that another one answered. */
  shadow: boolean;
  policy: string;
  policyEpoch: number;
  inTopic: LatencySketch;
  queue: LatencySketch;
  compute: LatencySketch;
  endToEnd: LatencySketch;
  outcomes: Map<string, number>;
  late: number;
  shadowDropped: number;
  heads: Map<string, HeadScores>;
  bytesMoved: number;
}

/** Latency sketches, outcome counts and score distributions of one worker, window by window. */
export class WorkerWindows {
  readonly #identity: { worker: string; incarnation: string; pool: string };
  readonly #clock: Clock;
  readonly #random: RandomStream;
  #open = new Map<string, OpenWindow>();
  /** The one that was asked for last: most requests are of one kind. */
  #latest: OpenWindow | undefined;
  #startedMs: number;
  #sequence = 0;

  /** @param random draws the candidate of each request whose scores are sampled */
  constructor(
    identity: { worker: string; incarnation: string; pool: string },
    clock: Clock,
    random: RandomStream,
  ) {
    this.#identity = identity;
    this.#clock = clock;
    this.#random = random;
    this.#startedMs = clock.monotonicMs();
  }

  scored(job: WorkerJob, computed: Computed, scores: ItemScores, bytesMoved: number): void {
    const dispatch = job.delivery.value;
    const window = this.#of(dispatch);
    const inTopicMs = dispatch.inTopicMs + job.delivery.inTopicMs;
    window.inTopic.add(inTopicMs);
    window.queue.add(computed.queueMs);
    window.compute.add(computed.computeMs);
    window.endToEnd.add(
      inTopicMs + dispatch.extractMs + dispatch.routeMs + (computed.nowMs - job.delivery.receivedAtMs),
    );
    window.bytesMoved += bytesMoved;
    this.#addHeads(window, job, scores, window.analysed);
  }

  #addHeads(window: OpenWindow, job: WorkerJob, scores: ItemScores, sampled: boolean): void {
    const scored = lastStageOf(scores);
    for (const { name, values } of scored.heads) headOf(window, name).addAll(values);
    if (sampled) this.#sample(window, job, scored);
  }

  /**
   * One candidate of each request: scores of one request are alike, and all of them would count as more evidence than they are. Candidates that a
   * budget granted are left out, for arms may differ in how many they get.
   */
  #sample(window: OpenWindow, { delivery, request }: WorkerJob, scored: LastStage): void {
    const candidates = countWithin(scored, delivery.value.baselineCandidates);
    if (candidates === 0) return;
    const drawn = Math.floor(this.#random.next() * candidates);
    const group = keyGroupOf(request.bucketKey ?? request.requestId);
    for (const { name, values } of scored.heads) headOf(window, name).sample(group, values[drawn] ?? 0);
  }

  /** Of a version on its way to live, on a request that another one answered. */
  shadowScored(
    job: WorkerJob,
    version: string,
    scores: ItemScores,
    computeMs: number,
    bytesMoved: number,
  ): void {
    const dispatch = job.delivery.value;
    const window = this.#shadowOf(dispatch, version);
    window.compute.add(computeMs);
    window.bytesMoved += bytesMoved;
    this.#addHeads(window, job, scores, dispatch.policy.analysed);
  }

  /** A request of the sample that found no quiet moment. */
  shadowDropped(dispatch: Dispatch, version: string): void {
    this.#shadowOf(dispatch, version).shadowDropped += 1;
  }

  ended(dispatch: Dispatch, outcome: OutcomeKind, late = false): void {
    const window = this.#of(dispatch);
    window.outcomes.set(outcome, (window.outcomes.get(outcome) ?? 0) + 1);
    if (late) window.late += 1;
  }

  /** The windows since the last call; empty when nothing happened. */
  take(): WorkerWindow[] {
    const nowMs = this.#clock.monotonicMs();
    const windowMs = nowMs - this.#startedMs;
    const taken = [...this.#open.values()].map((window) => this.#close(window, windowMs));
    this.#open = new Map();
    this.#latest = undefined;
    this.#startedMs = nowMs;
    return taken;
  }

  #close(window: OpenWindow, windowMs: number): WorkerWindow {
    this.#sequence += 1;
    return makeWorkerWindow({
      ...this.#identity,
      sequence: this.#sequence,
      windowStartMs: this.#clock.wallMs() - windowMs,
      windowMs,
      kernel: window.kernel,
      memory: window.memory,
      model: window.model,
      modelVersion: window.modelVersion,
      variant: window.variant,
      arm: window.arm,
      analysed: window.analysed,
      shadow: window.shadow,
      shadowDropped: window.shadowDropped,
      policy: window.policy,
      policyEpoch: window.policyEpoch,
      inTopicSketch: window.inTopic.toBytes(),
      queueSketch: window.queue.toBytes(),
      computeSketch: window.compute.toBytes(),
      endToEndSketch: window.endToEnd.toBytes(),
      outcomes: Object.fromEntries(window.outcomes),
      late: window.late,
      heads: [...window.heads].map(([name, head]) => head.toWindow(name)),
      bytesMoved: Math.round(window.bytesMoved),
    });
  }

  #of(dispatch: Dispatch): OpenWindow {
    if (this.#latest === undefined || !isOf(this.#latest, dispatch)) this.#latest = this.#find(dispatch);
    return this.#latest;
  }

  /** Readers that do not know of shadows pass over what is not analysed. */
  #shadowOf(dispatch: Dispatch, version: string): OpenWindow {
    const policy = { ...dispatch.policy, arm: 'CANARY', analysed: false } as const;
    return this.#find({ ...dispatch, modelVersion: version, policy }, true);
  }

  #find(dispatch: Dispatch, shadow = false): OpenWindow {
    const { kernel, memory, model, variant, policy } = dispatch;
    const modelVersion = dispatch.modelVersion ?? '';
    const { name, epoch, arm, analysed } = policy;
    const key = [kernel, memory, model, modelVersion, variant, name, epoch, arm, analysed, shadow].join(' ');
    let window = this.#open.get(key);
    if (window === undefined) {
      window = {
        kernel,
        memory,
        model,
        modelVersion,
        variant,
        arm,
        analysed,
        shadow,
        policy: name,
        policyEpoch: epoch,
        inTopic: new LatencySketch(),
        queue: new LatencySketch(),
        compute: new LatencySketch(),
        endToEnd: new LatencySketch(),
        outcomes: new Map(),
        late: 0,
        shadowDropped: 0,
        heads: new Map(),
        bytesMoved: 0,
      };
      this.#open.set(key, window);
    }
    return window;
  }
}

function isOf(window: OpenWindow, dispatch: Dispatch): boolean {
  return (
    window.kernel === dispatch.kernel &&
    window.memory === dispatch.memory &&
    window.model === dispatch.model &&
    window.modelVersion === (dispatch.modelVersion ?? '') &&
    window.variant === dispatch.variant &&
    window.arm === dispatch.policy.arm &&
    window.analysed === dispatch.policy.analysed &&
    window.policyEpoch === dispatch.policy.epoch &&
    window.policy === dispatch.policy.name
  );
}

function headOf({ heads }: OpenWindow, name: string): HeadScores {
  let head = heads.get(name);
  if (head === undefined) {
    head = new HeadScores();
    heads.set(name, head);
  }
  return head;
}
