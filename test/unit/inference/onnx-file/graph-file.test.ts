import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { floatsOf, int64, integersOf, sliceConstant } from '../../../../src/inference/onnx-file/constant.ts';
import type { OnnxNode } from '../../../../src/inference/onnx-file/graph.ts';
import { readGraph } from '../../../../src/inference/onnx-file/read-graph.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { deepCrossAttention } from '../rocs/models.ts';

const RANKER = readFileSync('models/repository/ranker/1/model.onnx');

describe('ONNX files', () => {
  it('come back as they were written', () => {
    const { graph } = deepCrossAttention(5, 8, 1, 2);
    const back = readGraph(writeGraph(graph));
    expect(back.inputs).toEqual(graph.inputs);
    expect(back.outputs).toEqual(graph.outputs);
    expect(back.nodes.map(({ op, inputs, outputs }) => ({ op, inputs, outputs }))).toEqual(
      graph.nodes.map(({ op, inputs, outputs }) => ({ op, inputs, outputs })),
    );
    for (const [name, constant] of back.constants) expect(constant).toEqual(graph.constants.get(name));
  });

  it("of an exporter are read with its inputs' axes", () => {
    const graph = readGraph(RANKER);
    expect(graph.inputs.map(({ name, shape }) => [name, shape])).toEqual([
      ['user', ['B', 64]],
      ['history', ['B', 'T', 32]],
      ['history_length', ['B']],
      ['item', ['N', 32]],
      ['request_index', ['N']],
    ]);
    expect(graph.nodes.every(({ op }) => op !== 'Constant')).toBe(true);
    expect(readGraph(writeGraph(graph)).nodes).toHaveLength(graph.nodes.length);
  });

  it.each([
    ['bytes that are not UTF-8', 'ta\xffee', 'ta\xfeee', 'ta\ufffdee'],
    ['nothing at all', 'twice', 'twice', 'twice'],
  ])('with two values whose names differ by %s are refused', (_, first, second, shown) => {
    const placeholders = ['FIRST', 'SECND'];
    const node = (op: string, inputs: string[], output = ''): OnnxNode => ({
      ...{ op, name: '', inputs, outputs: [output], attributes: [] },
    });
    const value = (name: string) => ({ name, type: 1, shape: ['N'] });
    const bytes = writeGraph({
      ...{ name: 'g', irVersion: 10n, opset: 20, constants: new Map() },
      inputs: [value('x')],
      outputs: [value('y')],
      nodes: [
        node('Relu', ['x'], placeholders[0]),
        node('Abs', ['x'], placeholders[1]),
        node('Add', placeholders, 'y'),
      ],
    });
    const text = Buffer.from(bytes).toString('latin1').replaceAll('FIRST', first).replaceAll('SECND', second);
    expect(() => readGraph(Buffer.from(text, 'latin1'))).toThrow(
      `two of its values have the same name (got ${JSON.stringify(shown)})`,
    );
  });

  it('that are damaged are refused, whatever the damage', () => {
    fc.assert(
      fc.property(fc.nat(RANKER.length - 1), fc.nat(255), fc.nat(RANKER.length), (at, byte, length) => {
        const damaged = Buffer.from(RANKER.subarray(0, Math.max(length, at + 1)));
        damaged[at] = byte;
        try {
          readGraph(damaged);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('constants', () => {
  it('are cut along any axis', () => {
    const constant = int64([2, 3, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(integersOf(sliceConstant(constant, 1, 1, 3))).toEqual([2, 3, 4, 5, 8, 9, 10, 11]);
    expect(integersOf(sliceConstant(constant, 0, 1, 2))).toEqual([6, 7, 8, 9, 10, 11]);
    expect(sliceConstant(constant, 2, 0, 1).dims).toEqual([2, 3, 1]);
    expect(floatsOf(constant)).toBeUndefined();
  });
});
