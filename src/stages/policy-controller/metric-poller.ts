import type { MetricGuardrail } from '../../core/policy/document.ts';
import type { MetricReading } from '../../core/rollout/metric-reading.ts';
import type { MetricsQuery } from '../../ports/metrics-query.ts';

type Readings = Readonly<Record<string, MetricReading>>;

/** What was asked for a rollout, and what was answered since its last look. */
interface Poll {
  /** Of one rollout alone: an answer to an earlier one, whose query may have been another, is none. */
  readonly salt: string;
  readings: Readings;
  isReading: boolean;
}

/** Polls the queries of each rollout's guardrails beside the controller's own work, which a slow answer must not hold up. */
export class MetricPoller {
  readonly #query: MetricsQuery;
  readonly #polls = new Map<string, Poll>();

  constructor(query: MetricsQuery) {
    this.#query = query;
  }

  /**
   * What was read since the last call, which began to read it; nothing at the first.
   *
   * @param salt of the rollout that runs in the scope
   */
  take(scope: string, salt: string, queries: readonly MetricGuardrail[]): Readings {
    let poll = this.#polls.get(scope);
    if (poll?.salt !== salt) {
      poll = { salt, readings: {}, isReading: false };
      this.#polls.set(scope, poll);
    }
    const { readings } = poll;
    poll.readings = {};
    if (queries.length > 0 && !poll.isReading) void this.#read(poll, queries);
    return readings;
  }

  async #read(poll: Poll, queries: readonly MetricGuardrail[]): Promise<void> {
    poll.isReading = true;
    const readings = await Promise.all(
      queries.map(async ({ name, query }) => [name, await this.#query.read(query)] as const),
    );
    poll.readings = Object.fromEntries(readings);
    poll.isReading = false;
  }
}
