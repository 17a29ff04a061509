import type { RecordCodec } from '../contracts/codec.ts';
import {
  type Identity,
  makeReason,
  makeScoredResult,
  makeTimings,
  type OutcomeKind,
  type ScoredResult,
  type Timings,
} from '../contracts/records.ts';
import { cutText } from '../core/cut-text.ts';
import { ERROR_CODES, type ErrorCode } from '../core/errors.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { OutboundRecord } from '../ports/message-bus.ts';

/** Why a request ended otherwise than scored. */
export interface Ending {
  outcome: Exclude<OutcomeKind, 'UNKNOWN' | 'SCORED'>;
  code: ErrorCode;
  message: string;
  retryAfterMs?: number;
}

/** What every result needs, whatever stage it comes from. */
export interface ResultHead {
  requestId: string;
  identity: Identity;
  attempt?: number;
  model?: string;
  baselineCandidates?: number;
  experiments?: Record<string, string>;
  timings?: Timings;
}

/** Of a reason, in characters. A text of a megabyte that a model server answered would make a result that no topic takes. */
const REASON_LENGTH_MAX = 2_048;

/** Why a request ended so, for whoever waits for it. */
export function reasonText(message: string): string {
  return cutText(message, REASON_LENGTH_MAX);
}

/** The result of a request that ends without scores. */
export function endedResult(
  head: ResultHead,
  ending: Ending,
  rest: Partial<ScoredResult> = {},
): ScoredResult {
  return makeScoredResult({
    ...rest,
    requestId: head.requestId,
    identity: head.identity,
    attempt: head.attempt,
    outcome: ending.outcome,
    reason: makeReason({
      code: ending.code,
      message: reasonText(ending.message),
      retryable: ERROR_CODES[ending.code].retryable,
      retryAfterMs: ending.retryAfterMs ?? null,
    }),
    model: head.model,
    baselineCandidates: head.baselineCandidates,
    experiments: head.experiments,
    timings: head.timings ?? makeTimings({}),
  });
}

/** Puts results on the partition where whoever waits for that request looks: its own choice, else its id's murmur2. */
export interface ResultWriter {
  /** @param isRepeated it was made before, and is not counted again */
  record(result: ScoredResult, resultPartition: number | null, isRepeated?: boolean): OutboundRecord;
}

/** @param onEnded told of each request that ends without scores */
export function createResultWriter(
  codec: RecordCodec<ScoredResult>,
  topic: string,
  partitions: number,
  onEnded: (outcome: OutcomeKind, code: string) => void = () => undefined,
): ResultWriter {
  return {
    record(result, resultPartition, isRepeated = false) {
      const isScored = result.outcome === 'SCORED' || result.outcome === 'DEGRADED';
      if (!isScored && !isRepeated) onEnded(result.outcome, result.reason?.code ?? 'none');
      const key = Buffer.from(result.requestId);
      const chosen = resultPartition !== null && resultPartition >= 0 && resultPartition < partitions;
      return {
        topic,
        partition: chosen ? resultPartition : partitionForKey(key, partitions),
        key,
        value: codec.encode(result),
        headers: codec.headers,
      };
    },
  };
}
