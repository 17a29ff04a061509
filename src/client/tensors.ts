import { makeTensor, type Tensor } from '../contracts/records.ts';

/** FP32 tensor from numbers in row-major order. */
export function fp32(name: string, shape: readonly number[], values: ArrayLike<number>): Tensor {
  const floats = Float32Array.from(values);
  return makeTensor({
    name,
    datatype: 'FP32',
    shape: [...shape],
    contents: Buffer.from(floats.buffer, 0, floats.byteLength),
  });
}

/** INT64 tensor [n], as candidate ids are sent. */
export function int64(name: string, values: readonly (number | bigint)[]): Tensor {
  const longs = BigInt64Array.from(values, (value) => BigInt(value));
  return makeTensor({
    name,
    datatype: 'INT64',
    shape: [longs.length],
    contents: Buffer.from(longs.buffer, 0, longs.byteLength),
  });
}

/** BYTES tensor [n] from texts: each element is a 4-byte little-endian length and its UTF-8 bytes. */
export function text(name: string, values: readonly string[]): Tensor {
  const parts = values.flatMap((value) => {
    const bytes = Buffer.from(value, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  return makeTensor({ name, datatype: 'BYTES', shape: [values.length], contents: Buffer.concat(parts) });
}

/** The numbers of FP32 bytes, such as a result's scores. */
export function readFp32(bytes: Uint8Array): Float32Array {
  const aligned = Uint8Array.prototype.slice.call(bytes);
  return new Float32Array(aligned.buffer, 0, Math.floor(aligned.byteLength / 4));
}

/** The elements of an id tensor as text: INT64 in decimal, BYTES as UTF-8. */
export function readIds(tensor: Tensor): string[] {
  const { contents } = tensor;
  const ids: string[] = [];
  if (tensor.datatype === 'INT64') {
    for (let offset = 0; offset + 8 <= contents.length; offset += 8)
      ids.push(contents.readBigInt64LE(offset).toString());
    return ids;
  }
  for (let offset = 0; offset + 4 <= contents.length; ) {
    const length = contents.readUInt32LE(offset);
    ids.push(contents.toString('utf8', offset + 4, offset + 4 + length));
    offset += 4 + length;
  }
  return ids;
}
