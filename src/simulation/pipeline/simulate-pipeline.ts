import type { ScoredResult, ScoreRequest } from '../../contracts/records.ts';
import { outcomeKind } from '../../core/outcome/outcome.ts';
import type { Arrival } from '../../traffic/arrivals.ts';
import { type OutsideLedger, openOutsideLedger } from '../../traffic/outside-ledger.ts';
import type { RequestMaker } from '../../traffic/request-maker.ts';
import { openSender } from '../../traffic/send-requests.ts';
import { Measurements } from '../report/measurements.ts';
import { PoolMeter, type WorkerReading } from '../report/pool-meter.ts';
import type { SimulationReport } from '../report/simulation-report.ts';
import { followCapacity } from './follow-capacity.ts';
import { SimulatedStages, type SimulatedStagesOptions } from './simulated-stages.ts';

export interface SimulatedTraffic {
  /** In words, for the report. */
  readonly description: string;
  readonly arrivals: Iterator<Arrival>;
  readonly maker: RequestMaker;
}

export interface PipelineSimulation extends SimulatedStagesOptions {
  readonly traffic: SimulatedTraffic;
  readonly durationMs: number;
  /** How long results are waited for after the last request. */
  readonly drainMs: number;
}

/** Heartbeats are heard and partitions assigned before the first request. */
const WARM_UP_MS = 2_000;
const STEPS = 200;
const STEP_MS_MIN = 50;

/** Runs traffic through the stages of the real pipeline in virtual time. The same options give the same report, byte for byte. */
export async function simulatePipeline(options: PipelineSimulation): Promise<SimulationReport> {
  const stages = new SimulatedStages(options);
  await stages.open();
  await stages.clock.advanceBy(WARM_UP_MS);
  const run = new Run(stages, options);
  await run.open();
  await run.pass();
  return run.report();
}

/** One run, from the first request to the last result. */
class Run {
  readonly #stages: SimulatedStages;
  readonly #options: PipelineSimulation;
  readonly #measured: Measurements;
  readonly #pools: ReadonlyMap<string, PoolMeter>;
  /** By request id, those without a result: when each was due. */
  readonly #dueMs = new Map<string, number>();
  #ledger: OutsideLedger | undefined;
  #send: ((request: ScoreRequest) => Promise<void>) | undefined;
  #sent = 0;
  #refused = 0;
  #startedMs = 0;

  constructor(stages: SimulatedStages, options: PipelineSimulation) {
    this.#stages = stages;
    this.#options = options;
    const stepMs = Math.max(STEP_MS_MIN, Math.ceil(options.durationMs / STEPS));
    this.#measured = new Measurements(stepMs);
    this.#pools = new Map(options.fleet.pools.map((pool) => [pool.pool, new PoolMeter(pool, stepMs)]));
  }

  async open(): Promise<void> {
    const client = this.#stages.connect('client');
    this.#ledger = await this.#stages.settle(
      openOutsideLedger(client, { onResult: (result) => this.#take(result) }),
    );
    this.#send = await this.#stages.settle(openSender(client));
  }

  /** Lets the traffic come, step by step, and its last results. */
  async pass(): Promise<void> {
    const { clock } = this.#stages;
    const { durationMs, drainMs, fleet } = this.#options;
    const { stepMs } = this.#measured;
    this.#startedMs = clock.monotonicMs();
    followCapacity(this.#stages, fleet.pools);
    for (const [pool, meter] of this.#pools) meter.begin(this.#readings(pool));
    this.#scheduleNext(0);
    for (let atMs = 0; atMs < durationMs; atMs += stepMs) {
      await clock.advanceTo(this.#startedMs + atMs + stepMs);
      this.#measured.stepEnded();
      for (const [pool, meter] of this.#pools) meter.stepEnded(this.#readings(pool));
    }
    await clock.runUntil(() => this.#dueMs.size === 0, drainMs);
  }

  report(): SimulationReport {
    const { random, durationMs, fleet, policy, traffic } = this.#options;
    const { digest, name, version } = policy.ref;
    const meters = [...this.#pools.values()];
    if (this.#ledger === undefined) throw new Error('the run is not open');
    return {
      format: 1,
      simulated: true,
      seed: random.seed,
      durationMs,
      fleet: fleet.fleet.name,
      policy: { name, version, digest },
      traffic: traffic.description,
      ledger: this.#ledger.summary(),
      latency: this.#measured.latency(),
      leaves: this.#measured.leaves(),
      pools: meters.map((meter) => meter.summary()),
      series: { ...this.#measured.series(), pools: meters.map((meter) => meter.series()) },
      notes: this.#notes(),
    };
  }

  /** Each request leaves exactly when it is due: there is no timer that is coarser than the traffic. */
  #scheduleNext(dueMs: number): void {
    const next = this.#options.traffic.arrivals.next();
    if (next.done === true) return;
    const atMs = dueMs + next.value.afterMs;
    if (!(atMs < this.#options.durationMs)) return;
    const { clock } = this.#stages;
    clock.after(this.#startedMs + atMs - clock.monotonicMs(), () => {
      this.#sendOne(next.value, this.#startedMs + atMs);
      this.#scheduleNext(atMs);
    });
  }

  #sendOne({ shape }: Arrival, dueMs: number): void {
    const id = `s${this.#sent}`;
    const request = this.#options.traffic.maker.make(id, shape);
    this.#sent += 1;
    this.#dueMs.set(id, dueMs);
    this.#measured.arrived();
    this.#send?.(request).catch(() => {
      this.#refused += 1;
    });
  }

  #take({ requestId, outcome, policy, target }: ScoredResult): void {
    const dueMs = this.#dueMs.get(requestId);
    const kind = outcomeKind(outcome);
    // A second result of a request is no second answer.
    if (dueMs === undefined || kind === undefined) return;
    this.#dueMs.delete(requestId);
    const latencyMs = this.#stages.clock.monotonicMs() - dueMs;
    this.#measured.answered({ outcome: kind, latencyMs, leaf: policy?.leaf });
    if (target !== null) this.#pools.get(target.pool)?.answered();
  }

  #readings(pool: string): WorkerReading[] {
    return this.#stages.workersOf(pool).flatMap(({ stage }) => {
      if (stage === undefined) return [];
      const { queued, busyMs } = stage.worker.load();
      return [{ life: stage.worker, queued, busyMs }];
    });
  }

  #notes(): string[] {
    const unanswered = this.#dueMs.size;
    const { drainMs } = this.#options;
    return [
      ...(unanswered === 0
        ? []
        : [
            `${unanswered} requests had no result ${drainMs} ms after the traffic ended: their latency is in no percentile`,
          ]),
      ...(this.#refused === 0 ? [] : [`${this.#refused} requests were refused by the bus`]),
      ...(this.#sent === 0 ? ['no request came in the time of the run'] : []),
    ];
  }
}
