import { describe, expect, it } from 'vitest';
import { tritonWords } from '../../../../src/inference/new-version/triton-words.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { readTritonConfig } from '../../../../src/inference/triton-config/triton-config.ts';

/** In the manner of Triton's own examples. */
const CONFIG = `
name: "dcn"
platform: "onnxruntime_onnx"
max_batch_size: 512
input [
  {
    name: "user"
    data_type: TYPE_FP32
    dims: [ 64 ]
  },
  {
    name: "history"
    data_type: TYPE_FP32
    dims: [ 20, 32 ]
  }
]
input { name: "id" data_type: TYPE_INT64 dims: [ 1 ] reshape: { shape: [ ] } }
output [ { name: "click" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]
dynamic_batching { preferred_batch_size: [ 64, 128 ] max_queue_delay_microseconds: 100 }
parameters { key: "threads" value: { string_value: "1" } }
`;

const GRAPH: OnnxGraph = {
  ...{ name: 'dcn', irVersion: 10n, opset: 20, constants: new Map(), nodes: [] },
  inputs: [
    { name: 'user', type: 1, shape: ['N', 64] },
    { name: 'history', type: 1, shape: ['N', 'T', 32] },
    { name: 'id', type: 7, shape: ['N'] },
  ],
  outputs: [
    { name: 'click', type: 1, shape: ['N', 1] },
    { name: 'embedding', type: 1, shape: ['N', 64] },
  ],
};

describe('config.pbtxt', () => {
  it('says what of a model is served, its datatypes and shapes, with the axis of the batch', () => {
    expect(readTritonConfig(CONFIG)).toEqual({
      maxBatchSize: 512,
      inputs: [
        { name: 'user', datatype: 'FP32', dims: [-1, 64] },
        { name: 'history', datatype: 'FP32', dims: [-1, 20, 32] },
        { name: 'id', datatype: 'INT64', dims: [] },
      ],
      outputs: [{ name: 'click', datatype: 'FP32', dims: [-1, 1] }],
    });
    expect(readTritonConfig('input { name: "x" dims: [ -1, 4 ] }')).toEqual({
      ...{ maxBatchSize: 0, outputs: [] },
      inputs: [{ name: 'x', datatype: '', dims: [-1, 4] }],
    });
  });

  it('gives a version its outputs, sizes and candidates', () => {
    expect(tritonWords(readTritonConfig(CONFIG), GRAPH)).toEqual({
      outputs: ['click'],
      sizes: new Map([['T', 20]]),
      candidatesMax: 512,
    });
    // How many rows there are is the call's, whatever a model that is not batched says.
    for (const text of ['', 'input { name: "user" dims: [ 512, 64 ] }']) {
      expect(tritonWords(readTritonConfig(text), GRAPH)).toEqual({
        outputs: undefined,
        sizes: new Map(),
        candidatesMax: undefined,
      });
    }
  });

  it.each<[string, string, RegExp]>([
    ['a batch that is none', 'max_batch_size: -1', /max_batch_size cannot be read.*"-1"/],
    ['a batch in quotes', 'max_batch_size: "8"', /max_batch_size cannot be read/],
    ['an input that is no message', 'input: "user"', /input cannot be read.*"user"/],
    ['an input without a name', 'input { dims: [ 1 ] }', /input\.name cannot be read/],
    ['a size of 0', 'input { name: "user" dims: [ 0 ] }', /input user: dims cannot be read.*"0"/],
    [
      'a size that is no number',
      'input { name: "user" dims: [ many ] }',
      /input user: dims cannot be read.*"many"/,
    ],
    ['a name twice', 'input { name: "user" } input { name: "user" }', /each name once/],
    [
      'an input that the graph has not',
      'input { name: "me" }',
      /the graph has no input me.*user, history, id/,
    ],
    ['an output that the graph has not', 'output { name: "buy" }', /the graph has no output buy.*click/],
    [
      'another datatype',
      'input { name: "id" data_type: TYPE_INT32 }',
      /input id is of another datatype.*"INT32".*INT64/,
    ],
    ['another size', 'max_batch_size: 8 input { name: "user" dims: [ 32 ] }', /input user has another shape/],
    [
      'another number of axes',
      'input { name: "user" dims: [ 64 ] }',
      /input user has another shape.*\[N, 64\]/,
    ],
  ])('is refused for %s', (_, text, reason) => {
    expect(() => tritonWords(readTritonConfig(text), GRAPH)).toThrow(reason);
  });
});
