import { describe, expect, test } from 'vitest';
import { float32 } from '../../../../src/inference/onnx-file/constant.ts';
import { intAttribute } from '../../../../src/inference/onnx-file/write-graph.ts';
import { compileGraph } from '../../../../src/inference/rocs/compile.ts';
import { withShapes } from '../new-version/small-models.ts';
import { GraphBuilder } from './graph-builder.ts';
import { crossNetwork } from './models.ts';

const GROUPS = [['user'], ['item']];
const OPTIONS = { strict: true, attention: 'tiles' } as const;

/** Models with one node, `culprit`, that lets candidates meet; each with words of the reason. */
const CULPRITS: [string, RegExp, (b: GraphBuilder, user: string, item: string) => string][] = [
  [
    'a mean over candidates',
    /across rows/,
    (b, _, item) => b.node('Sub', [item, b.node('ReduceMean', [item, b.numbers(0)], [], 'culprit')]),
  ],
  [
    'a sum over everything',
    /across rows/,
    (b, _, item) => b.node('Mul', [item, b.node('ReduceSum', [item], [], 'culprit')]),
  ],
  [
    'a softmax over candidates',
    /across rows/,
    (b, _, item) => b.node('Softmax', [item], [intAttribute('axis', 0)], 'culprit'),
  ],
  [
    'batch norm with the statistics of the batch',
    /statistics over the candidates/,
    (b, _, item) => {
      const ones = () => b.weights([4]);
      return b.node(
        'BatchNormalization',
        [item, ones(), ones(), ones(), ones()],
        [intAttribute('training_mode', 1)],
        'culprit',
      );
    },
  ],
  [
    'a scale of quantisation over the batch',
    /scale from all rows/,
    (b, _, item) => b.node('DynamicQuantizeLinear', [item], [], 'culprit'),
  ],
  ['an operator without a rule', /no rule/, (b, _, item) => b.node('NonZero', [item], [], 'culprit')],
  [
    'rows against rows',
    /one candidate would reach another/,
    (b, user, item) => b.node('MatMul', [user, item], [], 'culprit'),
  ],
  [
    'rows that move',
    /rows to another axis/,
    (b, _, item) => b.node('Unsqueeze', [item, b.numbers(0)], [], 'culprit'),
  ],
  ['rows folded away', /folds/, (b, _, item) => b.node('Reshape', [item, b.numbers(2, -1)], [], 'culprit')],
  [
    'candidates beside candidates',
    /across rows/,
    (b, _, item) => b.node('Concat', [item, item], [intAttribute('axis', 0)], 'culprit'),
  ],
  [
    'a cut through the rows',
    /across rows/,
    (b, _, item) =>
      b.node('Slice', [item, b.numbers(0), b.numbers(1), b.numbers(0), b.numbers(1)], [], 'culprit'),
  ],
  [
    'a value for each row',
    /a value of its own for each row/,
    (b, _, item) => b.node('Add', [item, b.constant(float32([3, 4], new Array(12).fill(1)))], [], 'culprit'),
  ],
  [
    'transposed rows of a layer',
    /transposes its rows/,
    (b, _, item) => b.node('Gemm', [item, b.weights([4, 4])], [intAttribute('transA', 1)], 'culprit'),
  ],
];

describe('models that are refused, the node named', () => {
  test.each(CULPRITS)('%s', (_, reason, make) => {
    const b = new GraphBuilder();
    const output = make(b, b.input('user', 4), b.input('item', 4));
    const graph = b.build({ from: output, shape: [4] });
    expect(() => compileGraph(graph, GROUPS, OPTIONS)).toThrow(reason);
    expect(() => compileGraph(graph, GROUPS, OPTIONS)).toThrow(/culprit/);
  });

  test('a layer without a mask lets candidates reach the request side', () => {
    const { graph, groups } = crossNetwork(24, 8, 2, { masked: false });
    expect(() => compileGraph(graph, groups, OPTIONS)).toThrow(
      /node cross_0.*reaches the request side.*--unmasked/s,
    );
    const compiled = compileGraph(graph, groups, { ...OPTIONS, strict: false });
    expect(compiled.graph.nodes.some(({ level }) => level === 0)).toBe(true);
  });

  test('an opset whose operators are others', () => {
    const { graph, groups } = crossNetwork(24, 8, 1);
    expect(() => compileGraph({ ...graph, opset: 12 }, groups, OPTIONS)).toThrow(
      /got 12; allowed: 13 and later/,
    );
  });

  test.each([
    [1, /input user has a fixed number of rows .*got "\[1, 24\]".*millrace model init/],
    [16, /input user has a fixed number of rows .*got "\[16, 24\]".*dynamic first axis\.$/],
  ])('an input of %i rows, whatever a call has', (rows, reason) => {
    const { graph, groups } = crossNetwork(24, 8, 1);
    const fixed = withShapes(graph, { user: [rows, 24] });
    expect(() => compileGraph(fixed, groups, OPTIONS)).toThrow(reason);
  });

  test('an input in no group', () => {
    const { graph } = crossNetwork(24, 8, 1);
    expect(() => compileGraph(graph, [['user'], []], OPTIONS)).toThrow(/input item is in no group/);
  });
});
