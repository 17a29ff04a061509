import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { twoGraphsText } from '../../../src/cli/model-compile.ts';
import { float32 } from '../../../src/inference/onnx-file/constant.ts';
import { readGraph } from '../../../src/inference/onnx-file/read-graph.ts';
import { intAttribute, writeGraph } from '../../../src/inference/onnx-file/write-graph.ts';
import { withShapes } from '../inference/new-version/small-models.ts';
import { GraphBuilder } from '../inference/rocs/graph-builder.ts';
import { crossNetwork, deepCrossAttention, type Model, perceptron } from '../inference/rocs/models.ts';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

function written({ graph }: Model): { file: string; out: string } {
  const folder = temporaryFolder();
  const file = folder.path('given.onnx');
  writeFileSync(file, writeGraph(graph));
  return { file, out: folder.path('compiled') };
}

const SIDES = ['--request-inputs', 'user', '--candidate-inputs', 'item', '--no-measure'];

describe('model compile', () => {
  it('writes one graph and its two sides, and says what they share', async () => {
    const { file, out } = written(crossNetwork(24, 8, 2));
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran).toMatchObject({ exitCode: 0, err: '' });
    expect(ran.out).toMatch(/the same scores on 11 made-up batches/);
    expect(ran.out).toContain('the two graphs give the same bits as the one\n');
    // Two layers of 32 × 32, of which 8 × 8 are the candidate's alone, 32 × 16 of which 8 × 16, and 16.
    expect(ran.out).toContain('multiplications per candidate: 272 of 2.6 k are left (11 %)');
    const names = (name: string) =>
      readGraph(readFileSync(join(out, name))).inputs.map((input) => input.name);
    expect(names('model.onnx')).toEqual(['user', 'item', 'request_index']);
    expect(names('request.onnx')).toEqual(['user']);
    expect(names('candidate.onnx').slice(-2)).toEqual(['item', 'request_index']);
  });

  it('measures what each form runs a second', async () => {
    const { file, out } = written(deepCrossAttention(20, 16, 1));
    const inputs = ['--request-inputs', 'history,user', '--candidate-inputs', 'item', '--json'];
    const ran = await millrace(['model', 'compile', file, ...inputs, '--out', out]);
    const report = JSON.parse(ran.out);
    const twoGraphs = { sameBits: true, difference: 0 };
    expect(report).toMatchObject({ usesTiles: true, verified: { batches: 11, twoGraphs } });
    expect(report.throughput.map((each: { candidates: number }) => each.candidates)).toEqual([
      64, 256, 1_024,
    ]);
    for (const { naive, copies, shared, candidate } of report.throughput) {
      for (const qps of [naive, copies, shared, candidate]) expect(qps).toBeGreaterThan(0);
    }
  });

  it('says what is left where only the first layer is shared, and warns', async () => {
    const { file, out } = written(perceptron(8, 32, 128));
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    // Given (8 + 32) · 128 + 128 · 2, left 32 · 128 + 128 · 2.
    expect(ran.out).toContain('multiplications per candidate: 4.4 k of 5.4 k are left (81 %)');
    expect(ran.err).toMatch(/warning: less than a third .* is shared: .*docs\/models\.md/);
    const json = await millrace(['model', 'compile', file, ...SIDES, '--out', out, '--force', '--json']);
    expect(JSON.parse(json.out).multiplications).toEqual({ given: 5_376, candidate: 4_352 });
  });

  it('says where the two graphs round otherwise than the one', () => {
    expect(twoGraphsText({ sameBits: false, difference: 1.25e-7 })).toMatch(
      /the same scores as the one, not the same bits \(largest difference 1\.[23]e-7 of the largest score\)/,
    );
  });

  it('writes over nothing unless it is told to, and never over the model itself', async () => {
    const { file, out } = written(crossNetwork(24, 8, 1));
    const compile = (from: string, ...flags: string[]) =>
      millrace(['model', 'compile', from, ...SIDES, '--out', out, ...flags]);
    expect(await compile(file)).toMatchObject({ exitCode: 0 });
    writeFileSync(join(out, 'candidate.onnx'), 'mine');
    const again = await compile(file);
    expect(again).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/written over .*candidate\.onnx.*--force/),
    });
    expect(readFileSync(join(out, 'candidate.onnx'), 'utf8')).toBe('mine');
    const itself = await compile(join(out, 'model.onnx'), '--force');
    expect(itself).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/the model would be written over/),
    });
    expect(await compile(file, '--force')).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(out, 'candidate.onnx'), 'utf8')).not.toBe('mine');
  });

  it('refuses a layer without a mask by its name, and writes nothing', async () => {
    const { file, out } = written(crossNetwork(24, 8, 2, { masked: false }));
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran.exitCode).not.toBe(0);
    expect(ran.err).toMatch(/node cross_0/);
    expect(existsSync(out)).toBe(false);
    const unmasked = await millrace(['model', 'compile', file, ...SIDES, '--out', out, '--unmasked']);
    expect(unmasked.exitCode).toBe(0);
  });

  it.each([
    [
      'an input that the model has not',
      ['--request-inputs', 'users', '--candidate-inputs', 'item'],
      /no such input.*users.*user, item/,
    ],
    [
      'an input in no group',
      ['--request-inputs', 'user', '--candidate-inputs', ''],
      /input item is in no group/,
    ],
  ])('refuses %s', async (_, inputs, reason) => {
    const { file, out } = written(crossNetwork(24, 8, 1));
    const ran = await millrace(['model', 'compile', file, ...inputs, '--out', out]);
    expect(ran.exitCode).not.toBe(0);
    expect(ran.err).toMatch(reason);
  });

  it('refuses a request of one row, and says what takes it', async () => {
    const model = crossNetwork(24, 8, 1);
    const { file, out } = written({ ...model, graph: withShapes(model.graph, { user: [1, 24] }) });
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/fixed number of rows.*model init/),
    });
  });

  it('tells what the runtime says of a model that it does not run, as one line', async () => {
    const b = new GraphBuilder();
    const beyond = b.node('Add', [b.input('item'), b.constant(float32([], [100]))]);
    const picked = b.node('Gather', [b.weights([3, 1]), b.node('Cast', [beyond], [intAttribute('to', 7)])]);
    const graph = b.build({ from: b.node('Mul', [picked, b.input('user', 1)]), shape: [1] });
    const { file, out } = written({ graph, groups: [] });
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(
        /^millrace: ONNX Runtime does not run the model on made-up inputs: .*Gather.*\n$/,
      ),
    });
  });

  it('refuses what is no model', async () => {
    const { file, out } = written(crossNetwork(24, 8, 1));
    writeFileSync(file, 'no model');
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran.err).toMatch(/given\.onnx: the file is not an ONNX model/);
    writeFileSync(file, '');
    expect((await millrace(['model', 'compile', file, ...SIDES, '--out', out])).err).toMatch(/given\.onnx: /);
    const none = await millrace(['model', 'compile', 'nowhere.onnx', ...SIDES, '--out', out]);
    expect(none).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/the model cannot be read: there is none of this name.*Correct the path/),
    });
  });
});
