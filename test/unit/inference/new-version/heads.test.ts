import { describe, expect, it } from 'vitest';
import { openGraphSession } from '../../../../src/inference/new-version/graph-session.ts';
import { planHeads, withHeads } from '../../../../src/inference/new-version/heads.ts';
import { isProbability } from '../../../../src/inference/new-version/probability.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { GraphBuilder } from '../rocs/graph-builder.ts';

function heads(outputs: Readonly<Record<string, readonly number[]>>, names?: readonly string[]) {
  const values = outputs as Record<string, number[]>;
  const observed = new Map(
    Object.entries(values).map(([name, dims]) => [name, { dims, values: new Float32Array(0) }]),
  );
  const declared = Object.keys(outputs).map((name) => ({ name, type: 1, shape: undefined }));
  return planHeads(declared, observed, 3, names);
}

describe('heads', () => {
  it.each<[string, Parameters<typeof heads>, string[]]>([
    ['a score per candidate', [{ click: [3] }], ['click']],
    ['in a column of its own', [{ click: [3, 1] }], ['click[0]']],
    ['several columns', [{ y: [3, 2] }], ['y_0 = y[0]', 'y_1 = y[1]']],
    ['several outputs', [{ click: [3], buy: [3, 1] }], ['click', 'buy[0]']],
    [
      'with names',
      [{ y: [3, 2], z: [3] }, ['click', 'buy', 'stay']],
      ['click = y[0]', 'buy = y[1]', 'stay = z'],
    ],
    [
      'a name that is none in an expression',
      [{ '/out/Sigmoid.0': [3] }],
      ['_out_Sigmoid_0 = /out/Sigmoid.0'],
    ],
    ['a name that begins with a digit', [{ '7': [3] }], ['_7 = 7']],
  ])('are made of %s', (_, [outputs, names], want) => {
    const made = heads(outputs, names).map(({ name, output, column }) => {
      const place = `${output}${column === undefined ? '' : `[${column}]`}`;
      return name === output ? place : `${name} = ${place}`;
    });
    expect(made).toEqual(want);
  });

  it.each<[string, Parameters<typeof heads>, RegExp]>([
    ['one row', [{ y: [1, 3] }], /output y is no score of each candidate .*\[1, 3\] for 3 candidates/],
    ['another axis', [{ y: [3, 2, 2] }], /no score of each candidate/],
    ['a vector', [{ y: [3, 64] }], /a vector for each candidate.*64 numbers.*--outputs/],
    ['too few names', [{ y: [3, 2] }, ['click']], /not one name for each head.*2: y\[0\], y\[1\]/],
    ['the same name twice', [{ y: [3, 2] }, ['click', 'click']], /two heads have the same name.*click/],
  ])('are not made of %s', (_, [outputs, names], reason) => {
    expect(() => heads(outputs, names)).toThrow(reason);
  });

  it('are the columns of an output, whatever the graph calls its own values', async () => {
    const b = new GraphBuilder();
    const relu = b.node('Relu', [b.input('x', 2)]);
    const graph = b.build({ from: relu, shape: [2] });
    // One head has the name of the output that both are columns of.
    const named = withHeads(graph, [
      { name: relu, output: relu, column: 1 },
      { name: 'first', output: relu, column: 0 },
    ]);
    const again = withHeads(named, [
      { name: 'first', output: relu, column: undefined },
      { name: relu, output: 'first', column: undefined },
    ]);
    expect(await run(named, [1, -2, 3, 4])).toEqual({ [relu]: [0, 4], first: [1, 3] });
    expect(await run(again, [1, -2, 3, 4])).toEqual({ first: [0, 4], [relu]: [1, 3] });
    expect(() => withHeads(graph, [{ name: 'x', output: relu, column: 0 }])).toThrow(
      /the name of an input.*"x"/,
    );
  });

  it.each<[string, string[], number[], boolean]>([
    ['a sigmoid', ['Sigmoid'], [0, 0.5, 1], true],
    ['a sigmoid that was moved', ['Sigmoid', 'Identity'], [0.2], true],
    ['a sigmoid that was scaled', ['Sigmoid', 'Neg'], [0.2], false],
    ['a quotient within', ['Reciprocal'], [0.2, 0.7], true],
    ['a quotient beyond', ['Reciprocal'], [0.2, 1.7], false],
    ['a plain number within', ['Relu'], [0.2, 0.7], false],
  ])('look like probabilities or not: %s', (_, ops, values, want) => {
    const b = new GraphBuilder();
    const last = ops.reduce((value, op) => b.node(op, [value]), b.input('x', 1));
    expect(isProbability(b.build({ from: last, shape: [1] }), last, values)).toBe(want);
  });
});

async function run(graph: OnnxGraph, numbers: number[]): Promise<Record<string, number[]>> {
  const session = await openGraphSession(writeGraph(graph), 'a graph of the test');
  const data = Float32Array.from(numbers);
  const outputs = await session.run({ x: { type: 'float32', data, dims: [data.length / 2, 2] } });
  await session.close();
  return Object.fromEntries([...outputs].map(([name, { values }]) => [name, [...values]]));
}
