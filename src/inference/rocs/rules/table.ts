import { cast, comparison, elementwise, where } from './elementwise.ts';
import { expand, flatten, reshape, squeeze, transpose, unsqueeze } from './layout.ts';
import { gemm } from './linear.ts';
import { matmul } from './matmul.ts';
import { alongAxis, batchNormalization, layerNormalization, reduce, reduceSum } from './reduce.ts';
import { constantOfShape, range, shape } from './sizes.ts';
import type { Rule } from './step.ts';
import { concat, gather, slice, split } from './stretches.ts';

const NUMBER_BY_NUMBER = [
  ...[
    'Abs',
    'Add',
    'And',
    'Ceil',
    'Celu',
    'Clip',
    'Cos',
    'Div',
    'Dropout',
    'Elu',
    'Erf',
    'Exp',
    'Floor',
    'Gelu',
  ],
  ...[
    'HardSigmoid',
    'HardSwish',
    'Identity',
    'LeakyRelu',
    'Log',
    'Max',
    'Min',
    'Mish',
    'Mod',
    'Mul',
    'Neg',
    'Not',
  ],
  ...[
    'Or',
    'Pow',
    'PRelu',
    'Reciprocal',
    'Relu',
    'Round',
    'Selu',
    'Sigmoid',
    'Sign',
    'Sin',
    'Softplus',
    'Softsign',
  ],
  ...['Sqrt', 'Sub', 'Sum', 'Tanh', 'ThresholdedRelu', 'Xor'],
];
const COMPARISONS = ['Equal', 'Greater', 'GreaterOrEqual', 'IsInf', 'IsNaN', 'Less', 'LessOrEqual'];
const REDUCTIONS = [
  'ReduceL1',
  'ReduceL2',
  'ReduceLogSumExp',
  'ReduceMax',
  'ReduceMean',
  'ReduceMin',
  'ReduceProd',
  'ReduceSumSquare',
];

/** By operator (https://onnx.ai/onnx/operators/): each works on every row by itself, or its rule refuses the nodes that do not. */
export const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...NUMBER_BY_NUMBER.map((op): [string, Rule] => [op, elementwise]),
  ...COMPARISONS.map((op): [string, Rule] => [op, comparison]),
  ...REDUCTIONS.map((op): [string, Rule] => [op, reduce]),
  ['BatchNormalization', batchNormalization],
  ['Cast', cast],
  ['Concat', concat],
  ['ConstantOfShape', constantOfShape],
  ['Expand', expand],
  ['Flatten', flatten],
  ['Gather', gather],
  ['Gemm', gemm],
  ['LayerNormalization', layerNormalization],
  ['LogSoftmax', alongAxis],
  ['MatMul', matmul],
  ['Range', range],
  ['ReduceSum', reduceSum],
  ['Reshape', reshape],
  ['Shape', shape],
  ['Slice', slice],
  ['Softmax', alongAxis],
  ['Split', split],
  ['Squeeze', squeeze],
  ['Transpose', transpose],
  ['Unsqueeze', unsqueeze],
  ['Where', where],
]);

/** Why an operator without a rule cannot have one. */
export const NEVER: ReadonlyMap<string, string> = new Map([
  [
    'DynamicQuantizeLinear',
    'it takes its scale from all rows, so that one candidate would change the scores of others',
  ],
  [
    'DynamicQuantizeMatMul',
    'it takes its scale from all rows, so that one candidate would change the scores of others',
  ],
  ['RandomNormal', 'scores would differ from call to call'],
  ['RandomUniform', 'scores would differ from call to call'],
]);
