import type { Codecs, RecordCodec } from '../../contracts/codec.ts';
import { type Dispatch, type ScoreRequest, VARIANTS } from '../../contracts/records.ts';
import type { Work } from '../../core/batching/work-queue.ts';
import { MillraceError } from '../../core/errors.ts';
import type { OverloadOrder } from '../../core/overload/overload-order.ts';
import type { OverloadReport } from '../../core/overload/overload-rules.ts';
import { parseModelName } from '../../core/request/family.ts';
import type { Density, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { FeatureSource } from '../../ports/feature-source.ts';
import type { InboundRecord } from '../../ports/message-bus.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ResultWriter } from '../results.ts';
import type { Delivery } from '../run-stage.ts';
import { SchemaWait } from '../schema-wait.ts';
import type { AckSender } from './ack-sender.ts';
import { BatchRunner, type BatchRunnerConfig, type BatchRunnerDeps } from './batch-runner.ts';
import { CostMeter } from './cost-meter.ts';
import { countDefaultRows, measureReads } from './feature-metrics.ts';
import { FeatureReads } from './feature-reads.ts';
import { JobEndings } from './job-endings.ts';
import { JobQueue, type JobQueueLimits } from './job-queue.ts';
import { LoadMeter, type LoadMeterConfig, type WorkerLoad } from './load-meter.ts';
import { failedResult } from './results.ts';
import { ShadowScoring } from './shadow-scoring.ts';
import { type FeatureUse, type WantedRows, wantedRows } from './sourced-rows.ts';
import type { WorkerWindows } from './windows.ts';
import { kernelFor, type WorkerJob } from './worker-job.ts';
import { WorkerOverload } from './worker-overload.ts';

export interface WorkerConfig extends BatchRunnerConfig, JobQueueLimits, LoadMeterConfig {
  worker: string;
  pool: string;
  simulated: boolean;
  /** How long a request may wait for rows of the feature source. */
  featuresWaitMs: number;
  /** Rules of overload: how long a request may take, ms, or 0 for none of them; and what is paid for first. */
  overload: { slaMs: number; order: OverloadOrder };
}

export interface WorkerDeps {
  clock: Clock;
  codecs: Pick<Codecs, 'learn'>;
  telemetry: Telemetry;
  requestCodec: RecordCodec<ScoreRequest>;
  results: ResultWriter;
  acks: AckSender;
  windows: WorkerWindows;
  /** Where rows of inputs are read that a request does not send and its model has no table for. */
  features?: FeatureSource | undefined;
  /** The loaded version that serves a dispatch, if this worker has one. */
  modelFor(family: string, version: string | null, variant: Dispatch['variant']): LoadedModel | undefined;
}

/**
 * Takes dispatches up: decodes the request, finds the model, and queues it, or ends it where there is none. What is queued runs in batches across
 * requests, earliest deadline first; results go out, and the dispatch is acknowledged, once they are stored.
 */
export class Worker {
  readonly #deps: WorkerDeps;
  readonly #schemaWait: SchemaWait<Delivery<Dispatch>>;
  readonly #overload: WorkerOverload | undefined;
  readonly #queue: JobQueue;
  readonly #meter: LoadMeter;
  readonly #endings: JobEndings;
  readonly #shadow: ShadowScoring;
  readonly #runner: BatchRunner;
  readonly #costs: CostMeter;
  readonly #reads: FeatureReads;
  readonly #defaulted: (model: LoadedModel, use: FeatureUse) => void;

  constructor(config: WorkerConfig, deps: WorkerDeps) {
    this.#deps = deps;
    this.#schemaWait = new SchemaWait('accelerator-worker', deps, (delivery, error) =>
      this.#endings.deadLetter(delivery, 'POISON', `failed after its schema was found: ${String(error)}`),
    );
    const { clock, windows, telemetry, modelFor } = deps;
    const { worker, simulated, pool } = config;
    const overload = overloadOf(config, clock);
    const queue = new JobQueue(config, overload);
    const meter = new LoadMeter(config);
    const endings = new JobEndings({ ...deps, worker, simulated, pool });
    const shadow = new ShadowScoring({
      pool: config.pool,
      clock,
      windows,
      requests: telemetry.counter({
        name: 'millrace_shadow_requests_total',
        help: 'Requests of the sample that a model version on its way to live scores beside the live one, by pool and outcome.',
        labels: ['pool', 'outcome'],
      }),
      modelFor: (family, version) => modelFor(family, version, 'BASELINE'),
      isIdle: () => this.#runner.running === 0 && queue.isEmpty,
      busyMs: () => meter.busyMs,
    });
    this.#overload = overload;
    this.#queue = queue;
    this.#meter = meter;
    this.#endings = endings;
    this.#shadow = shadow;
    const unknownItems = telemetry.counter({
      name: 'millrace_unknown_items_total',
      help: 'Candidates that were scored by the default row of an item table, which did not have their id, by pool and model.',
      labels: ['pool', 'model'],
    });
    const onUnknownIds = ({ family }: LoadedModel, count: number): void =>
      unknownItems.add(count, { pool: config.pool, model: family });
    const sparseValues = telemetry.counter({
      name: 'millrace_sparse_values_total',
      help: 'Values of the inputs that the sparse kernel multiplied, by pool, model, and whether they were zero.',
      labels: ['pool', 'model', 'value'],
    });
    const onDensity = ({ family: model }: LoadedModel, { values, nonZeros }: Density): void => {
      sparseValues.add(values - nonZeros, { pool: config.pool, model, value: 'zero' });
      sparseValues.add(nonZeros, { pool: config.pool, model, value: 'non-zero' });
    };
    this.#defaulted = countDefaultRows(config.pool, telemetry);
    this.#reads = new FeatureReads({
      clock,
      source: deps.features,
      limitMs: config.featuresWaitMs,
      onRead: measureReads(config.pool, telemetry),
    });
    const costs = new CostMeter(config.pool, telemetry);
    this.#costs = costs;
    const onComputed: BatchRunnerDeps['onComputed'] = (...computed) => costs.computed(...computed);
    const onCompleted: BatchRunnerDeps['onCompleted'] = (...done) => overload?.completed(...done);
    const observers = { onUnknownIds, onDensity, onComputed, onCompleted };
    this.#runner = new BatchRunner(config, { clock, queue, meter, endings, windows, shadow, ...observers });
  }

  /** For heartbeats, acknowledgements and metrics. */
  load(): WorkerLoad {
    const queued = this.#queue.length + this.#reads.length;
    const waitingMs = this.#queue.predictedMs + this.#reads.predictedMs;
    const queuedPredictedMs = waitingMs + this.#runner.leftPredictedMs(this.#meter.speed);
    return this.#meter.load({ queued, running: this.#runner.running, queuedPredictedMs });
  }

  /** Undefined where no rules of overload are set. */
  overload(): OverloadReport | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#queue.sample(nowMs);
    return this.#overload?.report(nowMs);
  }

  /** Share of the predicted work since the last call that was refused or lost by the rules of overload, 0 … 1. */
  takeSheddingLevel(): number {
    return this.#overload?.takeSheddingLevel() ?? 0;
  }

  /** Of what batches took since the last time. */
  publishCosts(): void {
    this.#costs.publish();
  }

  /** Whether a request here waits for this model, or is computed by it. */
  isUsing(model: LoadedModel): boolean {
    const isComputed = this.#shadow.isUsing(model) || this.#runner.isRunning(model);
    return isComputed || this.#queue.hasAnyFor(model) || this.#reads.hasAnyFor(model);
  }

  handle(delivery: Delivery<Dispatch>): void {
    const { acks } = this.#deps;
    acks.arrived(delivery);
    try {
      this.#decode(delivery);
    } catch (error) {
      // It comes once more, or ends as a dead letter that no acknowledgement tells of.
      acks.abandoned(delivery);
      throw error;
    }
  }

  /** Gives up queued work whose slot went away; what runs is finished. */
  abandon(gone: (record: InboundRecord) => boolean): void {
    const isGone = ({ delivery }: WorkerJob): boolean => gone(delivery.record);
    const queued = [...this.#queue.remove(isGone), ...this.#reads.remove(isGone)];
    const waiting = this.#schemaWait.abandon((delivery) => gone(delivery.record));
    for (const delivery of [...queued.map((job) => job.delivery), ...waiting]) {
      this.#deps.acks.abandoned(delivery);
      delivery.abandon();
    }
  }

  #decode(delivery: Delivery<Dispatch>): void {
    const { payload, payloadSchema } = delivery.value;
    const decoded = this.#deps.requestCodec.decode(payload, payloadSchema || undefined);
    switch (decoded.status) {
      case 'ok':
        this.#admit(delivery, decoded.value);
        return;
      case 'unreadable':
        this.#endings.deadLetter(
          delivery,
          decoded.code,
          `the request inside the dispatch cannot be read: ${decoded.message}`,
        );
        return;
      case 'schema-unknown':
        this.#schemaWait.wait(delivery, decoded, () => this.#decode(delivery));
        return;
      default:
        decoded satisfies never;
    }
  }

  #admit(delivery: Delivery<Dispatch>, request: ScoreRequest): void {
    const dispatch = delivery.value;
    const { model: family, modelVersion, variant } = dispatch;
    const model = this.#deps.modelFor(family, modelVersion, variant);
    const isPinned = parseModelName(request.model).version !== undefined;
    const other = model !== undefined || isPinned ? undefined : this.#deps.modelFor(family, null, variant);
    if (other !== undefined) {
      this.#queueUp(inPlace(delivery, other), request, other);
      return;
    }
    if (model === undefined) {
      const error = new MillraceError('UNKNOWN_MODEL', 'this worker has no such model version', {
        value: `${dispatch.model}@${dispatch.modelVersion ?? dispatch.variant}`,
        advice: 'Wait until pool status shows the version, then send the request again',
      });
      this.#endings.end(delivery, failedResult(this.#endings.computed(delivery, request), error));
      return;
    }
    this.#queueUp(delivery, request, model);
  }

  #queueUp(taken: Delivery<Dispatch>, request: ScoreRequest, model: LoadedModel): void {
    const delivery = byKernelOf(model, taken);
    const dispatch = delivery.value;
    // One that is no number would stay in every sum.
    const predictedMs = Number.isFinite(dispatch.predictedMs) ? Math.max(0, dispatch.predictedMs) : 0;
    this.#meter.enqueued(predictedMs);
    const work: Work<WorkerJob> = {
      deadlineMs: delivery.receivedAtMs + dispatch.budgetRemainingMs - delivery.inTopicMs,
      optional: dispatch.variant === VARIANTS[1],
      batchKey: `${model.family}@${model.version} ${dispatch.kernel} ${dispatch.memory}`,
      candidates: dispatch.scoreLimit,
      predictedMs,
      payload: { delivery, request, model, failures: 0 },
    };
    // Before rows are read for it: an overloaded worker asks its sources for nothing that it will not use.
    if (this.#queue.admits(work, this.#deps.clock.monotonicMs())) this.#withRows(work);
    else this.#endings.refuse(work.payload);
  }

  /** What was not sent is read first; nothing that is queued waits for it. */
  #withRows(work: Work<WorkerJob>): void {
    const { payload: job, deadlineMs, predictedMs, candidates } = work;
    let wanted: WantedRows[];
    try {
      wanted = candidates === 0 ? [] : wantedRows(job.model, job.request, candidates);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      this.#refuse(job, error);
      return;
    }
    if (wanted.length === 0) {
      this.#enqueue(work);
      return;
    }
    this.#reads.read({ job, wanted, predictedMs, untilMs: deadlineMs - predictedMs }, (rows) => {
      if (rows instanceof MillraceError) {
        this.#refuse(job, rows);
        return;
      }
      this.#defaulted(job.model, rows.use);
      this.#enqueue({ ...work, payload: { ...job, rows } });
    });
  }

  #enqueue(work: Work<WorkerJob>): void {
    this.#queue.push(work);
    this.#runner.pumpSoon();
  }

  #refuse({ delivery, request }: WorkerJob, error: MillraceError): void {
    this.#endings.end(delivery, failedResult(this.#endings.computed(delivery, request), error));
  }
}

function overloadOf({ overload, expectedSpeed }: WorkerConfig, clock: Clock): WorkerOverload | undefined {
  if (overload.slaMs === 0) return undefined;
  return new WorkerOverload({ ...overload, expectedThroughput: expectedSpeed }, clock.monotonicMs());
}

/** A policy's version that went away since the router heard of it: the newest of the folder answers, and says so. */
function inPlace(delivery: Delivery<Dispatch>, { version }: LoadedModel): Delivery<Dispatch> {
  const why = `version ${version} computed it in place of ${delivery.value.modelVersion}, which the worker lacks`;
  return degraded(delivery, { modelVersion: version }, why);
}

/** Routers know which kernels a worker has, and not which of its models each of them can run: another that can answers, and says so. */
function byKernelOf(model: LoadedModel, delivery: Delivery<Dispatch>): Delivery<Dispatch> {
  const wanted = delivery.value.kernel;
  const kernel = kernelFor(model, wanted);
  if (kernel === wanted) return delivery;
  const why = `kernel ${kernel} computed it in place of ${wanted}, which cannot run ${model.family}@${model.version}`;
  return degraded(delivery, { kernel }, why);
}

function degraded(delivery: Delivery<Dispatch>, change: Partial<Dispatch>, why: string): Delivery<Dispatch> {
  const { degradation } = delivery.value;
  const value = {
    ...delivery.value,
    ...change,
    degradation: degradation === null ? why : `${degradation}; ${why}`,
  };
  return { ...delivery, value };
}
