import { makeTensor, type Tensor } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import type { Datatype } from '../core/request/tensor.ts';

/** Datatypes that `tensor` makes from JavaScript values; for FP16 make the bytes yourself. */
export type TensorDatatype = Exclude<Datatype, 'FP16'>;
export type TensorValue = number | bigint | boolean | string;

/** FP32 tensor from numbers in row-major order. @throws MillraceError INVALID_TENSOR where they do not fill the shape */
export function fp32(name: string, shape: readonly number[], values: ArrayLike<number>): Tensor {
  checkCount(name, shape, values.length);
  const floats = Float32Array.from(values);
  return makeTensor({ name, datatype: 'FP32', shape: [...shape], contents: bytesOf(floats) });
}

/** INT64 tensor [n], as candidate ids are sent. @throws MillraceError INVALID_TENSOR for what is no whole number of 64 bits */
export function int64(name: string, values: ArrayLike<number | bigint>): Tensor {
  return tensor(name, 'INT64', [values.length], values);
}

/** BYTES tensor [n] from texts: each element is a 4-byte little-endian length and its UTF-8 bytes. */
export function text(name: string, values: ArrayLike<string>): Tensor {
  return tensor(name, 'BYTES', [values.length], values);
}

/**
 * A tensor of any datatype but FP16, from values in row-major order: numbers, bigints for INT64, booleans for BOOL, texts for BYTES.
 * @throws MillraceError INVALID_TENSOR where the values do not fill the shape, or one is none of that datatype
 */
export function tensor(
  name: string,
  datatype: TensorDatatype,
  shape: readonly number[],
  values: ArrayLike<TensorValue>,
): Tensor {
  checkCount(name, shape, values.length);
  return makeTensor({
    name,
    datatype,
    shape: [...shape],
    contents: encode(Array.from(values), datatype, name),
  });
}

/** The numbers of FP32 bytes, such as a result's scores. */
export function readFp32(bytes: Uint8Array): Float32Array {
  const aligned = Uint8Array.prototype.slice.call(bytes);
  return new Float32Array(aligned.buffer, 0, Math.floor(aligned.byteLength / 4));
}

/** The elements of an id tensor as text: INT64 in decimal, BYTES as UTF-8. @throws MillraceError INVALID_TENSOR for any other */
export function readIds(ids: Tensor): string[] {
  if (ids.datatype === 'INT64') return readLongs(ids.contents);
  if (ids.datatype === 'BYTES') return readTexts(ids);
  throw new MillraceError('INVALID_TENSOR', `tensor ${JSON.stringify(ids.name)} holds no ids`, {
    value: ids.datatype,
    allowed: 'INT64, BYTES',
  });
}

function readLongs(contents: Buffer): string[] {
  const ids: string[] = [];
  for (let offset = 0; offset + 8 <= contents.length; offset += 8)
    ids.push(contents.readBigInt64LE(offset).toString());
  return ids;
}

function readTexts({ name, contents }: Tensor): string[] {
  const ids: string[] = [];
  for (let offset = 0; offset < contents.length; ) {
    const end = offset + 4 <= contents.length ? offset + 4 + contents.readUInt32LE(offset) : Infinity;
    if (end > contents.length)
      throw new MillraceError('INVALID_TENSOR', `tensor ${JSON.stringify(name)} ends within an element`, {
        value: ids.length,
      });
    ids.push(contents.toString('utf8', offset + 4, end));
    offset = end;
  }
  return ids;
}

function checkCount(name: string, shape: readonly number[], count: number): void {
  const wanted = shape.reduce((product, size) => product * size, 1);
  const isShape = shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (isShape && wanted === count) return;
  throw new MillraceError(
    'INVALID_TENSOR',
    `tensor ${JSON.stringify(name)} has values that do not fill its shape`,
    {
      value: `${count} values for ${JSON.stringify(shape)}`,
      allowed: isShape ? `${wanted} values` : 'a shape of whole numbers from 0',
    },
  );
}

function encode(values: readonly TensorValue[], datatype: TensorDatatype, name: string): Buffer {
  switch (datatype) {
    case 'FP32':
      return bytesOf(Float32Array.from(values, numbersOf(datatype, name)));
    case 'FP64':
      return bytesOf(Float64Array.from(values, numbersOf(datatype, name)));
    case 'INT64':
      return bytesOf(BigInt64Array.from(values, longsOf(name)));
    case 'INT32':
      return bytesOf(Int32Array.from(values, numbersOf(datatype, name, [-(2 ** 31), 2 ** 31 - 1])));
    case 'INT8':
      return bytesOf(Int8Array.from(values, numbersOf(datatype, name, [-128, 127])));
    case 'UINT8':
      return bytesOf(Uint8Array.from(values, numbersOf(datatype, name, [0, 255])));
    case 'BOOL':
      return bytesOf(Uint8Array.from(values, flagsOf(name)));
    case 'BYTES':
      return Buffer.concat(values.map(textsOf(name)));
    default:
      return datatype satisfies never;
  }
}

type Encode<T> = (value: TensorValue, index: number) => T;

/** Numbers of any size, or whole ones within `range`. */
function numbersOf(datatype: string, name: string, range?: readonly [number, number]): Encode<number> {
  return (value, index) => {
    const isOne =
      typeof value === 'number' &&
      (range === undefined || (Number.isInteger(value) && value >= range[0] && value <= range[1]));
    if (isOne) return value;
    throw notOne(
      name,
      index,
      value,
      range === undefined ? `numbers for ${datatype}` : `whole numbers from ${range[0]} to ${range[1]}`,
    );
  };
}

function longsOf(name: string): Encode<bigint> {
  return (value, index) => {
    const isWhole = typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value));
    const long = isWhole ? BigInt(value) : undefined;
    if (long !== undefined && BigInt.asIntN(64, long) === long) return long;
    throw notOne(name, index, value, 'whole numbers of 64 bits; those beyond 2^53 as bigint');
  };
}

function flagsOf(name: string): Encode<number> {
  return (value, index) => {
    if (value === true || value === 1) return 1;
    if (value === false || value === 0) return 0;
    throw notOne(name, index, value, 'true, false, 1 or 0');
  };
}

function textsOf(name: string): Encode<Buffer> {
  return (value, index) => {
    if (typeof value !== 'string') throw notOne(name, index, value, 'texts for BYTES');
    const bytes = Buffer.from(value, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
}

function notOne(name: string, index: number, value: TensorValue, allowed: string): MillraceError {
  return new MillraceError(
    'INVALID_TENSOR',
    `element ${index} of tensor ${JSON.stringify(name)} is none of its datatype`,
    { value, allowed },
  );
}

function bytesOf(elements: NodeJS.TypedArray): Buffer {
  return Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength);
}
