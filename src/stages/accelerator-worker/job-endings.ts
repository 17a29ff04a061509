import type { Dispatch, ScoredResult, ScoreRequest } from '../../contracts/records.ts';
import type { Work } from '../../core/batching/work-queue.ts';
import { type ErrorCode, MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OutboundRecord } from '../../ports/message-bus.ts';
import type { Counter, Telemetry } from '../../ports/telemetry.ts';
import type { ResultWriter } from '../results.ts';
import type { Delivery } from '../run-stage.ts';
import type { AckSender } from './ack-sender.ts';
import { type Computed, unscoredResult } from './results.ts';
import type { WorkerWindows } from './windows.ts';
import type { WorkerJob } from './worker-job.ts';

export interface JobEndingsDeps {
  worker: string;
  pool: string;
  telemetry: Telemetry;
  simulated: boolean;
  clock: Clock;
  results: ResultWriter;
  acks: AckSender;
  windows: WorkerWindows;
}

/** Gives each dispatch its one terminal outcome: counted, acknowledged to its router, and published. */
export class JobEndings {
  readonly #deps: JobEndingsDeps;
  readonly #shed: Counter;

  constructor(deps: JobEndingsDeps) {
    this.#deps = deps;
    this.#shed = deps.telemetry.counter({
      name: 'millrace_shed_requests_total',
      help: 'Requests that an overloaded worker did not compute, by pool and reason: refused as they arrived, or cannot-finish in what was left of their budget.',
      labels: ['pool', 'reason'],
    });
  }

  /** A result that no record can hold (scores of many heads for many candidates) makes its own request a dead letter, and none beside it. */
  end(delivery: Delivery<Dispatch>, result: ScoredResult): void {
    const { windows, acks, results } = this.#deps;
    let record: OutboundRecord;
    try {
      record = results.record(result, delivery.value.resultPartition);
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'POISON';
      const message = error instanceof Error ? error.message : String(error);
      this.deadLetter(delivery, code, `its result cannot be sent: ${message}`);
      return;
    }
    windows.ended(delivery.value, result.outcome, result.late);
    acks.completed(delivery);
    delivery.finish([record]);
  }

  /** Its budget ran out before compute, or too little of it is left. */
  expire({ payload, deadlineMs, predictedMs }: Work<WorkerJob>, nowMs: number): void {
    const { delivery, request } = payload;
    const budget = `the budget of ${Math.round(delivery.value.budgetMs)} ms`;
    const { worker, pool } = this.#deps;
    const isOver = deadlineMs <= nowMs;
    if (!isOver) this.#shed.add(1, { pool, reason: 'cannot-finish' });
    this.end(
      delivery,
      unscoredResult(this.computed(delivery, request, nowMs), {
        outcome: 'EXPIRED',
        code: 'BUDGET_EXHAUSTED',
        message: isOver
          ? `${budget} ran out before compute, in the queue of ${worker}`
          : `${(deadlineMs - nowMs).toFixed(1)} ms were left of ${budget} after the queue of ${worker}, too few for about ${predictedMs.toFixed(1)} ms of compute`,
      }),
    );
  }

  /** More was asked of the worker than it can do in time, and other work comes before this. */
  refuse({ delivery, request }: WorkerJob): void {
    const { worker, pool } = this.#deps;
    this.#shed.add(1, { pool, reason: 'refused' });
    this.end(
      delivery,
      unscoredResult(this.computed(delivery, request), {
        outcome: 'REJECTED',
        code: 'OVERLOADED',
        message: `${worker} of pool ${pool} has more work than it can do in time, and this request is worth less for its cost, or is of lower priority, than what it can do. Back off, then send it again`,
      }),
    );
  }

  deadLetter(delivery: Delivery<Dispatch>, code: ErrorCode, message: string): void {
    this.#deps.windows.ended(delivery.value, 'DEAD_LETTERED');
    this.#deps.acks.completed(delivery);
    delivery.deadLetter(code, message);
  }

  /** Where its time went, up to now. @param startedMs when its compute began; now where that never did */
  computed(
    delivery: Delivery<Dispatch>,
    request?: ScoreRequest,
    startedMs?: number,
    computeMs = 0,
  ): Computed {
    const { clock, worker, simulated } = this.#deps;
    const nowMs = clock.monotonicMs();
    const queueMs = (startedMs ?? nowMs) - delivery.receivedAtMs;
    return { delivery, request, queueMs, computeMs, worker, simulated, nowMs };
  }
}
