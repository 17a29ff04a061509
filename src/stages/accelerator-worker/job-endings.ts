import type { Dispatch, ScoredResult, ScoreRequest } from '../../contracts/records.ts';
import { type ErrorCode, MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OutboundRecord } from '../../ports/message-bus.ts';
import type { ResultWriter } from '../results.ts';
import type { Delivery } from '../run-stage.ts';
import type { AckSender } from './ack-sender.ts';
import { type Computed, unscoredResult } from './results.ts';
import type { WorkerWindows } from './windows.ts';
import type { WorkerJob } from './worker-job.ts';

export interface JobEndingsDeps {
  worker: string;
  simulated: boolean;
  clock: Clock;
  results: ResultWriter;
  acks: AckSender;
  windows: WorkerWindows;
}

/** Gives each dispatch its one terminal outcome: counted, acknowledged to its router, and published. */
export class JobEndings {
  readonly #deps: JobEndingsDeps;

  constructor(deps: JobEndingsDeps) {
    this.#deps = deps;
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

  /** Its budget ran out before compute. */
  expire({ delivery, request }: WorkerJob, nowMs: number): void {
    this.end(
      delivery,
      unscoredResult(this.computed(delivery, request, nowMs), {
        outcome: 'EXPIRED',
        code: 'BUDGET_EXHAUSTED',
        message: `the budget of ${Math.round(delivery.value.budgetMs)} ms ran out before compute, in the queue of ${this.#deps.worker}`,
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
