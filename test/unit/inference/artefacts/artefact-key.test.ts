import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Tensor } from '../../../../src/core/request/tensor.ts';
import { type ArtefactOrigin, artefactKey } from '../../../../src/inference/artefacts/artefact-key.ts';

const USER: Tensor = { name: 'user', datatype: 'FP32', shape: [1, 2], contents: Buffer.alloc(8, 1) };
const HOUR: Tensor = { name: 'hour', datatype: 'INT64', shape: [1], contents: Buffer.alloc(8, 2) };
const ORIGIN: ArtefactOrigin = {
  modelDigest: `sha256:${'ab'.repeat(32)}`,
  computedBy: 'onnx-cpu 1.30.0',
  bucketKey: 'ann',
  requestTensors: [USER, HOUR],
};

test.each<[string, Partial<ArtefactOrigin>]>([
  ['model', { modelDigest: `sha256:${'ac'.repeat(32)}` }],
  ['machine', { computedBy: 'onnx-cpu 1.30.1' }],
  ['user', { bucketKey: 'bob' }],
  ['user by a letter that could be the text before', { computedBy: 'onnx-cpu 1.30.0a', bucketKey: 'nn' }],
  ['value', { requestTensors: [{ ...USER, contents: Buffer.alloc(8, 3) }, HOUR] }],
  ['shape', { requestTensors: [{ ...USER, shape: [2, 1] }, HOUR] }],
  ['shape of the same digits', { requestTensors: [{ ...USER, shape: [12] }, HOUR] }],
  ['type', { requestTensors: [{ ...USER, datatype: 'INT32' }, HOUR] }],
  ['name', { requestTensors: [{ ...USER, name: 'item' }, HOUR] }],
  ['number of tensors', { requestTensors: [USER] }],
])('another %s is another key', (_what, change) => {
  expect(artefactKey({ ...ORIGIN, ...change })).not.toEqual(artefactKey(ORIGIN));
});

test('the order of the tensors is none of it', () => {
  expect(artefactKey({ ...ORIGIN, requestTensors: [HOUR, USER] })).toEqual(artefactKey(ORIGIN));
});

test('no two requests share a key', () => {
  const origin = fc.record({
    modelDigest: fc.constant(ORIGIN.modelDigest),
    computedBy: fc.constantFrom('', 'a', 'ab'),
    bucketKey: fc.constantFrom('', 'a', 'b', 'ba'),
    requestTensors: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('', 'a', 'b', 'ab'),
        datatype: fc.constantFrom('', 'FP32', 'INT64'),
        shape: fc.array(fc.nat({ max: 12 }), { maxLength: 2 }),
        contents: fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
      }),
      { selector: ({ name }) => name, maxLength: 3 },
    ),
  });
  const asText = (of: ArtefactOrigin) =>
    JSON.stringify({
      ...of,
      requestTensors: of.requestTensors.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    });
  const property = fc.property(origin, origin, (one, other) => {
    expect(artefactKey(one).equals(artefactKey(other))).toBe(asText(one) === asText(other));
  });
  fc.assert(property, { numRuns: 500 });
});
