/**
 * Finds tensors of an ONNX model whose bytes lie in another file. Such a model reads files that its digest does not cover,
 * at paths of its author's choosing.
 *
 * Walks the protobuf wire format (https://protobuf.dev/programming-guides/encoding/) down the fields of onnx.proto3 that can hold a
 * TensorProto, and skips everything else unread.
 */
type Message = 'model' | 'graph' | 'function' | 'node' | 'attribute' | 'sparseTensor' | 'tensor';

/** Field number → the message in it. */
const NESTED: Readonly<Record<Message, Readonly<Record<number, Message>>>> = {
  model: { 7: 'graph', 25: 'function' },
  graph: { 1: 'node', 5: 'tensor', 15: 'sparseTensor' },
  function: { 7: 'node', 11: 'attribute' },
  node: { 5: 'attribute' },
  attribute: { 5: 'tensor', 6: 'graph', 10: 'tensor', 11: 'graph', 22: 'sparseTensor', 23: 'sparseTensor' },
  sparseTensor: { 1: 'tensor', 2: 'tensor' },
  tensor: {},
};
const TENSOR_NAME = 8;
const TENSOR_EXTERNAL_DATA = 13;
const TENSOR_DATA_LOCATION = 14;
const DEPTH_MAX = 64;

/**
 * The name of the first tensor with external data; `undefined` where the file holds everything itself.
 * @throws RangeError where the bytes are not whole protobuf.
 */
export function findExternalData(model: Uint8Array): string | undefined {
  return search(model, 0, model.length, 'model', 0);
}

function search(
  bytes: Uint8Array,
  start: number,
  end: number,
  message: Message,
  depth: number,
): string | undefined {
  if (depth > DEPTH_MAX) throw new RangeError(`messages nest deeper than ${DEPTH_MAX}`);
  let name = '';
  let external = false;
  for (let at = start; at < end; ) {
    const field = readField(bytes, at, end);
    at = field.end;
    if (message === 'tensor') {
      if (field.number === TENSOR_NAME)
        name = Buffer.from(bytes.subarray(field.start, field.end)).toString('utf8');
      if (field.number === TENSOR_EXTERNAL_DATA) external = true;
      if (field.number === TENSOR_DATA_LOCATION && field.value !== 0) external = true;
      continue;
    }
    const nested = NESTED[message][field.number];
    if (nested === undefined || field.wireType !== 2) continue;
    const found = search(bytes, field.start, field.end, nested, depth + 1);
    if (found !== undefined) return found;
  }
  return external ? name : undefined;
}

interface Field {
  number: number;
  wireType: number;
  /** Of a varint. */
  value: number;
  /** Of the contents. */
  start: number;
  end: number;
}

function readField(bytes: Uint8Array, at: number, limit: number): Field {
  const tag = readVarint(bytes, at, limit);
  const wireType = tag.value % 8;
  const number = Math.floor(tag.value / 8);
  const first =
    wireType === 0 || wireType === 2 ? readVarint(bytes, tag.end, limit) : { value: 0, end: tag.end };
  const end = first.end + contentsLength(wireType, first.value);
  if (end > limit) throw new RangeError(`field ${number} at byte ${at} runs past the end`);
  return { number, wireType, value: first.value, start: first.end, end };
}

function contentsLength(wireType: number, length: number): number {
  switch (wireType) {
    case 0:
      return 0;
    case 1:
      return 8;
    case 2:
      return length;
    case 5:
      return 4;
    default:
      throw new RangeError(`wire type ${wireType} is not of protobuf 3`);
  }
}

function readVarint(bytes: Uint8Array, at: number, limit: number): { value: number; end: number } {
  let value = 0;
  for (let shift = 0; shift < 10; shift++) {
    const byte = at + shift < limit ? bytes[at + shift] : undefined;
    if (byte === undefined) throw new RangeError(`a number at byte ${at} runs past the end`);
    value += (byte & 0x7f) * 2 ** (7 * shift);
    if (byte < 0x80) return { value, end: at + shift + 1 };
  }
  throw new RangeError(`a number at byte ${at} has more than 10 bytes`);
}
