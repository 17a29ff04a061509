import { expect, test } from 'vitest';
import { sentTensor } from '../../../src/inference/open-inference/tensors.ts';
import { padEmpty } from '../../../src/inference/padding.ts';

const ONES = new Uint8Array(64).fill(1).buffer;

test.each([
  ['one without an axis of 0', 'FP32', [2, 3], [2, 3], 1, 24],
  ['a sequence of no rows, as one row of zeros', 'FP32', [0, 4], [1, 4], 0, 16],
  ['one of whole numbers', 'INT64', [2, 0], [2, 1], 0, 16],
  ['no candidates and no rows', 'FP32', [0, 0, 5], [1, 1, 5], 0, 20],
] as const)('%s', (_, datatype, dims, padded, byte, bytes) => {
  const given = { name: 'x', datatype, offset: 8, dims: [...dims] };
  const { slab, tensor } = padEmpty(ONES, given);
  expect(tensor.dims).toEqual(padded);
  const read = new Uint8Array(slab, tensor.offset, bytes);
  expect([...read]).toEqual(new Array(bytes).fill(byte));
  const sent = sentTensor(ONES, given);
  expect(sent).toEqual({ name: 'x', datatype, shape: padded, contents: read });
});
