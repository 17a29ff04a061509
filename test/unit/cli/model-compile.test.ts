import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readGraph } from '../../../src/inference/onnx-file/read-graph.ts';
import { writeGraph } from '../../../src/inference/onnx-file/write-graph.ts';
import { crossNetwork, deepCrossAttention, type Model } from '../inference/rocs/models.ts';
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
    expect(report).toMatchObject({ usesTiles: true, verified: { batches: 11 } });
    expect(report.throughput.map((each: { candidates: number }) => each.candidates)).toEqual([
      64, 256, 1_024,
    ]);
    for (const { naive, copies, shared, candidate } of report.throughput) {
      for (const qps of [naive, copies, shared, candidate]) expect(qps).toBeGreaterThan(0);
    }
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

  it('refuses what is no model', async () => {
    const { file, out } = written(crossNetwork(24, 8, 1));
    writeFileSync(file, 'no model');
    const ran = await millrace(['model', 'compile', file, ...SIDES, '--out', out]);
    expect(ran.err).toMatch(/not an ONNX model/);
    const none = await millrace(['model', 'compile', 'nowhere.onnx', ...SIDES, '--out', out]);
    expect(none).toMatchObject({ exitCode: 2, err: expect.stringMatching(/cannot be read/) });
  });
});
