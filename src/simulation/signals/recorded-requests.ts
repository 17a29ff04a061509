import type { CompiledPolicy } from '../../core/policy/compile.ts';
import { type SignalVector, toSignalVector } from '../../core/policy/explain.ts';
import { type CapturedRequest, capturedRequests } from '../../traffic/import/capture-corpus.ts';
import type { TraceFile } from '../../traffic/import/trace-file.ts';

/** A request whose signals were taken beforehand, as a policy decides it and a worker takes it. */
export interface RecordedRequest {
  readonly vector: SignalVector;
  readonly candidates: number;
  /** Service time at speed 1; a request whose cost could not be predicted counts as 1 ms, as in the router. */
  readonly predictedMs: number;
  /** Share of non-zeros in the request's own tensors, 0 … 1. */
  readonly density: number;
}

/**
 * All requests of a corpus of `millrace capture`, for one policy.
 * @throws MillraceError INVALID_CONFIG with line, column and what is allowed
 */
export function recordedRequests(file: TraceFile, policy: CompiledPolicy): RecordedRequest[] {
  const requests: RecordedRequest[] = [];
  for (const captured of capturedRequests(file)) requests.push(recorded(captured, policy));
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
