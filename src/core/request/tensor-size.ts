import { type Rejection, reject } from './rejection.ts';
import { type Datatype, ELEMENT_BYTES, type Tensor } from './tensor.ts';

/** A checked tensor's number of elements, or why its shape and its bytes do not agree. */
export type TensorSize = number | Rejection;

/** Checks that the shape is one and that the contents have just its size. `name` is its name in messages. */
export function checkTensorSize(
  tensor: Tensor,
  datatype: Datatype,
  rankMax: number,
  name: string,
): TensorSize {
  const elements = countElements(tensor.shape, rankMax, name);
  if (typeof elements !== 'number') return elements;
  return datatype === 'BYTES'
    ? checkBytesElements(tensor, elements, name)
    : checkContentsLength(tensor, elements, ELEMENT_BYTES[datatype], name);
}

function countElements(shape: readonly number[], rankMax: number, name: string): TensorSize {
  if (shape.length > rankMax)
    return reject('INVALID_TENSOR', `tensor ${JSON.stringify(name)} has too many dimensions`, {
      value: shape.length,
      allowed: `at most ${rankMax}`,
    });
  let elements = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0)
      return reject('INVALID_TENSOR', `tensor ${JSON.stringify(name)} has a dimension that is no size`, {
        value: shape,
        allowed: 'whole numbers from 0',
      });
    elements *= size;
  }
  if (!Number.isSafeInteger(elements))
    return reject(
      'INVALID_TENSOR',
      `tensor ${JSON.stringify(name)} has a shape whose number of elements overflows`,
      {
        value: shape,
        allowed: 'a product below 2^53',
      },
    );
  return elements;
}

function checkContentsLength(
  tensor: Tensor,
  elements: number,
  elementBytes: number,
  name: string,
): TensorSize {
  const bytes = elements * elementBytes;
  if (tensor.contents.length === bytes) return elements;
  return reject('INVALID_TENSOR', `tensor ${JSON.stringify(name)} has contents that do not fit its shape`, {
    value: `${tensor.contents.length} bytes for ${tensor.datatype} ${JSON.stringify(tensor.shape)}`,
    allowed: `${bytes} bytes`,
    advice: 'Send raw little-endian values in row-major order.',
  });
}

/** Walks the elements of a BYTES tensor: each a 4-byte little-endian length and as many bytes, the last one ending the contents. */
function checkBytesElements(tensor: Tensor, elements: number, name: string): TensorSize {
  const { contents } = tensor;
  let end = 0;
  for (let index = 0; index < elements; index++) {
    if (end + 4 > contents.length) return truncatedAt(index, elements, contents, name);
    end += 4 + contents.readUInt32LE(end);
    if (end > contents.length) return truncatedAt(index, elements, contents, name);
  }
  if (end === contents.length) return elements;
  return reject('INVALID_TENSOR', `tensor ${JSON.stringify(name)} has bytes after its last element`, {
    value: `${contents.length - end} bytes after ${elements} elements`,
    allowed: 'as many elements as the shape says',
  });
}

function truncatedAt(index: number, elements: number, contents: Uint8Array, name: string): Rejection {
  return reject(
    'INVALID_TENSOR',
    `tensor ${JSON.stringify(name)} ends within element ${index} of ${elements}`,
    {
      value: contents,
      allowed: 'per element a 4-byte little-endian length and as many bytes',
    },
  );
}
