import { makeTensor, type ScoreRequest, type Tensor } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import { checkIds, firstIds } from '../../core/request/candidate-ids.ts';
import { entityIdOf } from '../../core/request/entity-id.ts';
import { int64Of } from '../../core/request/item-id.ts';
import type { LoadedModel } from '../../ports/accelerator.ts';
import type { EntityId, FeatureRows, RowState, SourcedInput } from '../../ports/feature-source.ts';

/** Why a default row stands in. */
export type DefaultReason = Exclude<RowState, 'found'> | 'unavailable';

/** What of a request came from a feature source. */
export interface FeatureUse {
  /** Each once. */
  views: readonly string[];
  /** Rows of the request and of its scored candidates that default rows stood in for. */
  defaultRows: number;
  reasons: ReadonlyMap<DefaultReason, number>;
}

/** Inputs that a request did not send, as if it had. */
export interface SourcedRows {
  requestTensors: readonly Tensor[];
  candidateTensors: readonly Tensor[];
  use: FeatureUse;
}

/** An input whose rows are to be read, and of what. */
export interface WantedRows {
  source: SourcedInput;
  ids: readonly EntityId[];
}

/**
 * The inputs that a request did not send and the model reads from a feature source. What was sent is fresher.
 * @throws MillraceError INVALID_TENSOR where the request has no id for one of them
 */
export function wantedRows(
  { sources = [] }: LoadedModel,
  request: ScoreRequest,
  scoreLimit: number,
): WantedRows[] {
  return sources
    .filter(({ input, side }) => {
      const sent = side === 'request' ? request.requestTensors : request.candidateTensors;
      return !sent.some(({ name }) => name === input);
    })
    .map((source) => ({ source, ids: idsOf(source, request, scoreLimit) }));
}

function idsOf(source: SourcedInput, request: ScoreRequest, scoreLimit: number): EntityId[] {
  const asStored = (id: bigint | string): EntityId => {
    if (source.ids === 'STRING') return String(id);
    // The store has no text among its numbers: it is read as one, and is missing.
    return typeof id === 'bigint' ? id : (int64Of(id) ?? id);
  };
  const { candidateIds } = request;
  if (source.side === 'candidate' && candidateIds !== null) {
    checkIds(candidateIds, scoreLimit);
    return firstIds(candidateIds, scoreLimit).map(asStored);
  }
  const id = source.side === 'candidate' ? undefined : entityIdOf(request, source.idFrom);
  if (id !== undefined) return [asStored(id)];
  throw new MillraceError('INVALID_TENSOR', 'an input is missing', {
    allowed: `${source.input}, or ${source.idFrom}`,
  });
}

/**
 * @param answer by position of `wanted`; or why there is none
 * @throws MillraceError NO_FEATURES, or what the answer is, where the model refuses what has no row
 */
export function sourcedRows(
  wanted: readonly WantedRows[],
  answer: readonly FeatureRows[] | MillraceError,
  request: ScoreRequest,
): SourcedRows {
  const reasons = new Map<DefaultReason, number>();
  const tensors = { request: [] as Tensor[], candidate: [] as Tensor[] };
  wanted.forEach(({ source, ids }, position) => {
    const rows = Array.isArray(answer) ? answer[position] : undefined;
    if (rows === undefined && source.missing === 'reject') throw withoutAnswer(answer);
    const values = rows?.values ?? new Float32Array(ids.length * source.of.width);
    ids.forEach((id, k) => {
      const state = rows === undefined ? 'unavailable' : (rows.states[k] ?? 'missing');
      if (state === 'found') return;
      if (source.missing === 'reject') throw refusal(source, id, state);
      values.set(source.defaultRow, k * source.of.width);
      reasons.set(state, (reasons.get(state) ?? 0) + 1);
    });
    tensors[source.side].push(tensorOf(source, values, request));
  });
  const defaultRows = [...reasons.values()].reduce((sum, count) => sum + count, 0);
  const views = [...new Set(wanted.map(({ source }) => source.of.view))];
  return {
    requestTensors: tensors.request,
    candidateTensors: tensors.candidate,
    use: { views, defaultRows, reasons },
  };
}

function withoutAnswer(answer: readonly FeatureRows[] | MillraceError): MillraceError {
  return answer instanceof MillraceError
    ? answer
    : new MillraceError('STORE_UNAVAILABLE', 'the feature source answered less than it was asked');
}

const WHY = {
  missing: 'has no row',
  stale: 'has no row that is young enough',
  invalid: 'has no row of numbers that fits',
  unavailable: 'did not answer',
} as const satisfies Record<DefaultReason, string>;

function refusal({ of, input }: SourcedInput, id: EntityId, state: DefaultReason): MillraceError {
  return new MillraceError('NO_FEATURES', `the feature view ${of.view} ${WHY[state]} for ${of.joinKey}`, {
    value: String(id),
    advice: `Send ${input}, or have the store filled.`,
  });
}

/** As many rows as the tensors that were sent have candidates; those after the scored ones are never read. */
function tensorOf(
  { input: name, side, rowShape, of: { width } }: SourcedInput,
  values: Float32Array,
  request: ScoreRequest,
): Tensor {
  if (side === 'request')
    return makeTensor({ name, datatype: 'FP32', shape: [...rowShape], contents: bytesOf(values) });
  const scored = values.length / width;
  const candidates = Math.max(scored, request.candidateTensors[0]?.shape[0] ?? 0);
  const contents = Buffer.alloc(4 * candidates * width);
  contents.set(bytesOf(values));
  return makeTensor({ name, datatype: 'FP32', shape: [candidates, ...rowShape], contents });
}

function bytesOf(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}
