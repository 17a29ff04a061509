import type { FamilyContract } from '../../../../src/core/request/family.ts';
import type { RequestFields } from '../../../../src/core/request/fields.ts';
import type { Datatype, Tensor } from '../../../../src/core/request/tensor.ts';

/** A family like the committed ranker's, small enough to write its requests by hand. */
export const RANKER: FamilyContract = {
  family: 'ranker',
  slaMs: 100,
  versions: [
    { version: '1', variant: 'baseline' },
    { version: '2', variant: 'enhanced' },
  ],
  candidatesMax: 8,
  sequenceLengthMax: 6,
  tensorBytesMax: 4096,
  inputs: [
    { name: 'user', side: 'request', datatype: 'FP32', shape: [4], required: true },
    { name: 'history', side: 'request', datatype: 'FP32', shape: [-1, 8], required: false },
    {
      name: 'history_length',
      side: 'request-length',
      datatype: 'INT64',
      shape: [],
      required: false,
      lengthOf: 'history',
    },
    { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, 2], required: true },
    { name: 'tags', side: 'candidate', datatype: 'BYTES', shape: [-1], required: false },
    { name: 'request_index', side: 'request-index', datatype: 'INT64', shape: [-1], required: false },
  ],
};

export const FAMILIES: ReadonlyMap<string, FamilyContract> = new Map([
  ['ranker', RANKER],
  ['retriever', { ...RANKER, family: 'retriever' }],
]);

/** Contents start at an odd address, as a decoder hands them out. */
export function unaligned(bytes: Uint8Array): Buffer {
  const buffer = Buffer.alloc(bytes.length + 1);
  buffer.set(bytes, 1);
  return buffer.subarray(1);
}

export function tensor(name: string, datatype: string, shape: number[], contents: Uint8Array): Tensor {
  return { name, datatype, shape, contents: unaligned(contents) };
}

const WRITERS: Record<Exclude<Datatype, 'BYTES'>, (buffer: Buffer, value: number, index: number) => void> = {
  FP32: (buffer, value, index) => void buffer.writeFloatLE(value, 4 * index),
  FP64: (buffer, value, index) => void buffer.writeDoubleLE(value, 8 * index),
  FP16: (buffer, value, index) => void buffer.writeUInt16LE(value, 2 * index),
  INT64: (buffer, value, index) => void buffer.writeBigInt64LE(BigInt(value), 8 * index),
  INT32: (buffer, value, index) => void buffer.writeInt32LE(value, 4 * index),
  INT8: (buffer, value, index) => void buffer.writeInt8(value, index),
  UINT8: (buffer, value, index) => void buffer.writeUInt8(value, index),
  BOOL: (buffer, value, index) => void buffer.writeUInt8(value, index),
};

const BYTES_OF = { FP32: 4, FP64: 8, FP16: 2, INT64: 8, INT32: 4, INT8: 1, UINT8: 1, BOOL: 1 };

/** A tensor of these numbers; FP16 takes the 16 bits of each value. */
export function numbers(
  name: string,
  datatype: Exclude<Datatype, 'BYTES'>,
  shape: number[],
  values: readonly number[],
): Tensor {
  const contents = Buffer.alloc(BYTES_OF[datatype] * values.length);
  values.forEach((value, index) => {
    WRITERS[datatype](contents, value, index);
  });
  return tensor(name, datatype, shape, contents);
}

export function texts(name: string, shape: number[], elements: readonly string[]): Tensor {
  const parts = elements.flatMap((text) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(text));
    return [length, Buffer.from(text)];
  });
  return tensor(name, 'BYTES', shape, Buffer.concat(parts));
}

export const USER = numbers('user', 'FP32', [4], [1, 0, -2, 2]);
export const HISTORY = numbers('history', 'FP32', [2, 8], [3, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
export const ITEM = numbers('item', 'FP32', [3, 2], [1, 2, 0, 4, 5, 0]);
export const IDS = numbers('ids', 'INT64', [3], [101, 102, 103]);

/** A good request with 3 candidates, some of its fields replaced. */
export function request(changes: Partial<RequestFields> = {}): RequestFields {
  return {
    requestId: 'request-1',
    model: 'ranker',
    deadlineMs: null,
    priority: 5,
    value: null,
    candidateValues: null,
    bucketKey: null,
    region: null,
    baselineCandidates: 2,
    candidateIds: IDS,
    requestTensors: [USER, HISTORY],
    candidateTensors: [ITEM],
    hints: {},
    context: {},
    experiments: {},
    optOut: [],
    pin: null,
    resultPartition: null,
    ...changes,
  };
}
