import { MillraceError } from '../../core/errors.ts';
import { readTextFormat, type TextMessage, type TextValue } from './text-format.ts';

/** An input or output as a config.pbtxt of Triton has it. */
export interface TritonTensor {
  readonly name: string;
  /** Without `TYPE_`: FP32, INT64, …; '' where the file leaves it out. */
  readonly datatype: string;
  /** As the graph has it: with the axis of the batch in front (-1), where the model is batched. Empty where the file leaves it out. */
  readonly dims: readonly number[];
}

export interface TritonConfig {
  readonly inputs: readonly TritonTensor[];
  readonly outputs: readonly TritonTensor[];
  /** Rows of one call; 0 where the model is not batched. */
  readonly maxBatchSize: number;
}

/**
 * What a Triton model's `config.pbtxt` says of its tensors; how it is scheduled and where is not read.
 * Source: https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto
 * @throws MillraceError INVALID_MODEL
 */
export function readTritonConfig(text: string): TritonConfig {
  const message = readTextFormat(text);
  const size = wordOf(message, 'max_batch_size');
  const maxBatchSize = size === undefined ? 0 : wholeNumber('max_batch_size', size);
  if (maxBatchSize < 0) throw invalid('max_batch_size', String(maxBatchSize), 'a whole number from 0');
  return {
    maxBatchSize,
    inputs: tensorsOf(message, 'input', maxBatchSize > 0),
    outputs: tensorsOf(message, 'output', maxBatchSize > 0),
  };
}

function tensorsOf(message: TextMessage, field: 'input' | 'output', isBatched: boolean): TritonTensor[] {
  const tensors = (message.get(field) ?? []).map((value): TritonTensor => {
    if (value.kind !== 'message') throw invalid(field, value.text, 'a message in { }');
    const name = value.fields.get('name')?.at(-1);
    if (name?.kind !== 'text' || name.text === '')
      throw invalid(`${field}.name`, name?.kind, 'a text in quotes');
    // A reshape says that the graph's shape is another than what clients see.
    const written = value.fields.has('reshape') ? [] : (value.fields.get('dims') ?? []);
    const dims = written.map((dim) => dimOf(`${field} ${name.text}: dims`, dim));
    return {
      name: name.text,
      datatype: (wordOf(value.fields, 'data_type') ?? '').replace(/^TYPE_/, ''),
      dims: dims.length > 0 && isBatched ? [-1, ...dims] : dims,
    };
  });
  const twice = tensors.find(({ name }, n) => tensors.findIndex((other) => other.name === name) !== n);
  if (twice !== undefined) throw invalid(`${field}.name`, twice.name, 'each name once');
  return tensors;
}

function dimOf(what: string, value: TextValue): number {
  const size = wholeNumber(what, value.kind === 'word' ? value.text : '');
  if (size === -1 || size > 0) return size;
  throw invalid(what, String(size), '-1, or a whole number from 1');
}

/** Of a field that is given many times the last one counts. */
function wordOf(message: TextMessage, field: string): string | undefined {
  const value = message.get(field)?.at(-1);
  if (value === undefined) return undefined;
  if (value.kind === 'word') return value.text;
  throw invalid(field, value.kind, 'a number or a name without quotes');
}

function wholeNumber(what: string, text: string): number {
  const value = /^[-+]?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw invalid(what, text, 'a whole number');
}

function invalid(what: string, value: string | undefined, allowed: string): MillraceError {
  return new MillraceError('INVALID_MODEL', `${what} cannot be read`, { value, allowed });
}
