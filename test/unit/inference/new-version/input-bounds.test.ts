import { describe, expect, it } from 'vitest';
import { checkNames } from '../../../../src/inference/new-version/input-bounds.ts';
import type { OnnxNode, OnnxValue } from '../../../../src/inference/onnx-file/graph.ts';

const value = (name: string): OnnxValue => ({ name, type: 1, shape: ['N', 1] });
const made = (output: string): OnnxNode => ({
  ...{ op: 'Relu', name: 'n', inputs: ['x'], outputs: [output], attributes: [] },
});

describe('names', () => {
  it.each([
    ['an input', { inputs: [value('user.1')] }],
    ['an index that is an input', { inputs: [value('request_index')] }],
    ['an inner value', { nodes: [made('request_indices')] }],
  ])('of %s are taken', (_, graph) => {
    expect(() => checkNames({ inputs: [], outputs: [], nodes: [], ...graph })).not.toThrow();
  });

  it.each([
    [
      'an output that is made under the name of an index',
      { nodes: [made('request_index')] },
      /inner value .*request_index/,
    ],
    [
      'a value under the name of a tile',
      { nodes: [made('tile_candidates')] },
      /inner value .*tile_candidates/,
    ],
    ['an input of two lines', { inputs: [value('a\nb')] }, /an input has a name/],
    [
      'an output that every object has',
      { outputs: [value('constructor')] },
      /an output has a name .*constructor/,
    ],
  ])('of %s are refused', (_, graph, reason) => {
    expect(() => checkNames({ inputs: [], outputs: [], nodes: [], ...graph })).toThrow(reason);
  });
});
