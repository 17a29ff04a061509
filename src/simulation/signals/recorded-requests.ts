import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { type SignalVector, toSignalVector } from '../../core/policy/explain.ts';
import type { ShadowedRequest } from '../../stages/request-router/shadow.ts';
import { type CapturedRequest, capturedRequests } from '../../traffic/import/capture-corpus.ts';
import type { TraceFile } from '../../traffic/import/trace-file.ts';

/** Which model a recorded request asked for is not known: each worker has this one. */
export const RECORDED_FAMILY = 'recorded';

/** A request whose signals were taken beforehand, as a policy decides it and a worker takes it. */
export interface RecordedRequest {
  readonly vector: SignalVector;
  readonly candidates: number;
  /** Service time at speed 1; a request whose cost could not be predicted counts as 1 ms, as in the router. */
  readonly predictedMs: number;
  /** Share of non-zeros in the request's own tensors, 0 … 1. */
  readonly density: number;
  /** For a second policy that decides beside the first; missing where none does. */
  readonly byName?: ShadowedRequest;
}

/**
 * All requests of a corpus of `millrace capture`, for one policy.
 *
 * @param withNames keeps the signals by their names as well, for a candidate in shadow
 * @throws MillraceError INVALID_CONFIG with line, column and what is allowed
 */
export function recordedRequests(
  file: TraceFile,
  policy: CompiledPolicy,
  withNames = false,
): RecordedRequest[] {
  const requests: RecordedRequest[] = [];
  for (const captured of capturedRequests(file)) {
    const request = recorded(captured, policy);
    requests.push(withNames ? { ...request, byName: byNameOf(captured) } : request);
  }
  return requests;
}

function recorded({ signals, context, shape }: CapturedRequest, policy: CompiledPolicy): RecordedRequest {
  const cost = signals['predictedCostMs'];
  const sparsity = signals['sparsityRatio'];
  return {
    vector: toSignalVector(policy, [...Object.entries(signals), ...Object.entries(context)]),
    candidates: shape.candidates,
    predictedMs: typeof cost === 'number' && cost > 0 ? cost : 1,
    density: typeof sparsity === 'number' && sparsity >= 0 && sparsity <= 1 ? 1 - sparsity : 1,
  };
}

/** As the record of a request has them; flags are 1 or 0. */
function byNameOf({ signals, context }: CapturedRequest): ShadowedRequest {
  const numbers = Object.entries(signals).flatMap(([name, value]) =>
    value === null || typeof value === 'string' ? [] : [[name, Number(value)] as const],
  );
  return { signals: Object.fromEntries(numbers), context, model: RECORDED_FAMILY, modelVersion: null };
}
