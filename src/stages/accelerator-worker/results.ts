import {
  type Dispatch,
  makeReason,
  makeScoredResult,
  makeTargetTaken,
  makeTensor,
  makeTimings,
  type ScoredResult,
  type ScoreRequest,
  type Tensor,
} from '../../contracts/records.ts';
import { ERROR_CODES, MillraceError } from '../../core/errors.ts';
import type { ItemScores, LoadedModel } from '../../ports/accelerator.ts';
import { type Ending, endedResult, reasonText } from '../results.ts';
import type { Delivery } from '../run-stage.ts';
import type { FeatureUse } from './sourced-rows.ts';

/** A dispatch that the worker is done with, and where its time went. */
export interface Computed {
  delivery: Delivery<Dispatch>;
  request: ScoreRequest | undefined;
  queueMs: number;
  computeMs: number;
  worker: string;
  simulated: boolean;
  nowMs: number;
}

/** All baseline candidates were scored by the model promised; by the kernel promised, too, unless the dispatch says otherwise. */
export function scoredResult(
  computed: Computed,
  scores: ItemScores,
  model: LoadedModel,
  late: boolean,
  features?: FeatureUse,
): ScoredResult {
  const dispatch = computed.delivery.value;
  const scored = scores.scores.length;
  return makeScoredResult({
    requestId: dispatch.requestId,
    identity: dispatch.identity,
    attempt: dispatch.attempt,
    ...promiseKept(dispatch),
    late,
    model: model.family,
    modelVersion: model.version,
    variant: dispatch.variant,
    outputs: scores.heads.map((head) =>
      makeTensor({ name: head.name, datatype: 'FP32', shape: [scored], contents: bytesOf(head.values) }),
    ),
    scores: bytesOf(scores.scores),
    candidateIds: prefixOf(computed.request?.candidateIds ?? null, scored),
    scoredStage: scores.stages === undefined ? null : Buffer.from(scores.stages),
    candidatesScored: scored,
    candidatesGranted: dispatch.scoreLimit - dispatch.baselineCandidates,
    itemTableVersion: scores.fromTables?.tables.join(',') ?? '',
    unknownIds: scores.fromTables?.unknownIds ?? 0,
    featureViews: features?.views.join(',') ?? '',
    defaultRows: features?.defaultRows ?? 0,
    ...shared(computed),
  });
}

/** A kernel other than the one that the policy chose gives an answer, but not the one promised. */
function promiseKept({ degradation }: Dispatch): Pick<ScoredResult, 'outcome' | 'reason'> {
  if (degradation === null) return { outcome: 'SCORED', reason: null };
  const reason = makeReason({
    code: 'NO_TARGET',
    message: reasonText(degradation),
    retryable: ERROR_CODES.NO_TARGET.retryable,
  });
  return { outcome: 'DEGRADED', reason };
}

export function unscoredResult(computed: Computed, ending: Ending): ScoredResult {
  const dispatch = computed.delivery.value;
  const head = {
    requestId: dispatch.requestId,
    identity: dispatch.identity,
    attempt: dispatch.attempt,
    model: dispatch.model,
  };
  const rest = shared(computed);
  return endedResult(
    {
      ...head,
      timings: rest.timings,
      baselineCandidates: rest.baselineCandidates,
      experiments: rest.experiments,
    },
    ending,
    rest,
  );
}

/** The request's own fault is a refusal; a fault of ours leaves it unanswered but says that trying again can help. */
export function failedResult(computed: Computed, error: Error): ScoredResult {
  const code = error instanceof MillraceError ? error.code : 'MODEL_FAILED';
  return unscoredResult(computed, { outcome: 'REJECTED', code, message: error.message });
}

function shared(computed: Computed) {
  const { delivery, queueMs, computeMs } = computed;
  const dispatch = delivery.value;
  const inTopicMs = dispatch.inTopicMs + delivery.inTopicMs;
  const totalMs =
    inTopicMs + dispatch.extractMs + dispatch.routeMs + (computed.nowMs - delivery.receivedAtMs);
  return {
    baselineCandidates: dispatch.baselineCandidates,
    policy: dispatch.policy,
    target: makeTargetTaken({
      accelerator: dispatch.accelerator,
      pool: dispatch.pool,
      kernel: dispatch.kernel,
      memory: dispatch.memory,
      worker: computed.worker,
      simulated: computed.simulated,
    }),
    fallback: dispatch.fallback,
    experiments: computed.request?.experiments ?? {},
    timings: makeTimings({
      inTopicMs,
      extractMs: dispatch.extractMs,
      routeMs: dispatch.routeMs,
      queueMs,
      computeMs,
      totalMs,
      budgetMs: dispatch.budgetMs,
    }),
    trace: dispatch.trace,
  };
}

/** Up to so many values V8 keeps within the object: asking for their buffer then makes one, which costs more than writing them anew. */
const INLINE_VALUES_MAX = 16;

function bytesOf(values: Float32Array): Buffer {
  if (values.length > INLINE_VALUES_MAX)
    return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const bytes = Buffer.allocUnsafe(values.byteLength);
  for (let i = 0; i < values.length; i += 1) bytes.writeFloatLE(values[i] ?? 0, i * 4);
  return bytes;
}

/** The ids of the first n candidates: INT64 by size, BYTES by walking the lengths. */
function prefixOf(ids: Tensor | null, n: number): Tensor | null {
  if (ids === null) return null;
  return makeTensor({
    name: ids.name,
    datatype: ids.datatype,
    shape: [n],
    contents: ids.contents.subarray(0, prefixBytes(ids, n)),
  });
}

function prefixBytes(ids: Tensor, n: number): number {
  if (ids.datatype !== 'BYTES') {
    const total = ids.shape[0] ?? 0;
    return total === 0 ? 0 : (ids.contents.length / total) * n;
  }
  let offset = 0;
  for (let i = 0; i < n; i += 1) offset += 4 + ids.contents.readUInt32LE(offset);
  return offset;
}
