import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OnnxGraph } from '../../../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../../../src/inference/onnx-file/write-graph.ts';
import { pooledHistory, sumOfLayers } from '../inference/new-version/small-models.ts';
import { deepCrossAttention, perceptron } from '../inference/rocs/models.ts';
import { millrace, QUICK_PIPELINE } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

function given(graph: OnnxGraph) {
  const folder = temporaryFolder();
  const file = folder.path('given.onnx');
  writeFileSync(file, writeGraph(graph));
  const out = folder.path('models');
  const init = (...flags: string[]) =>
    millrace(['model', 'init', file, '--family', 'feed', '--out', out, ...flags]);
  return { out, init, place: (version: number) => join(out, 'feed', String(version)) };
}

const FILES = ['config.yaml', 'cost.json', 'golden.json', 'model.onnx', 'request.json'];

describe('model init', () => {
  it('writes a version that the embedded pipeline scores with, and says what it guessed', async () => {
    const { out, init, place } = given(sumOfLayers('one'));
    const ran = await init('--heads', 'click', '--description', 'a model: of "mine"');
    expect(ran).toMatchObject({ exitCode: 0, err: '' });
    expect(ran.out).toMatch(/^user +request +FP32 \[6\] +its shape is fixed: no axis counts candidates$/m);
    expect(ran.out).toMatch(/^item +candidate +FP32 \[4\] +its first axis is N$/m);
    expect(ran.out).toMatch(/^click +probability +output sigmoid_9\[0\] of given\.onnx$/m);
    expect(ran.out).toMatch(/cost of a request: .*N.* ms \(off by \d+ % in the median, \d+ % at the 95th/);
    expect(ran.out).toContain(`MILLRACE_MODELS=${out} millrace score ${place(1)}/request.json`);
    expect(readdirSync(place(1)).sort()).toEqual(FILES);
    const digest = await millrace(['model', 'digest', place(1), '--json']);
    expect(JSON.parse(digest.out)).toMatchObject({ family: 'feed', version: '1' });
    const environment = { ...QUICK_PIPELINE, MILLRACE_WORKER_BACKEND: 'onnx-cpu', MILLRACE_MODELS: out };
    const scored = await millrace(['score', join(place(1), 'request.json'), '--json'], { environment });
    expect(JSON.parse(scored.out)).toMatchObject({ outcome: 'SCORED', model: 'feed' });
  });

  it('reports as JSON', async () => {
    const { init, place } = given(pooledHistory());
    const flags = ['--candidate-inputs', 'item', '--sequence-max', '8', '--candidates-max', '32', '--json'];
    const report = JSON.parse((await init(...flags)).out);
    expect(report).toMatchObject({
      ...{ family: 'feed', version: 1, folder: place(1), sharing: 'compiled', goldenCases: 6 },
      inputs: [
        { name: 'history', side: 'request', datatype: 'FP32', shape: ['T', 4], optional: true },
        { name: 'history_length', side: 'request', lengthOf: 'history' },
        { name: 'segment', datatype: 'INT64', shape: [] },
        { name: 'item', side: 'candidate', why: 'as you said' },
      ],
      cost: { features: ['1', 'N', 'T', 'N*T'] },
    });
    expect(JSON.parse(readFileSync(join(place(1), 'golden.json'), 'utf8')).madeBy).toMatch(
      /onnxruntime-node/,
    );
  });

  it('ranks by an expression over heads and hints', async () => {
    const { init, place } = given(perceptron(3, 3, 4).graph);
    const heads = ['--request-inputs', 'user', '--heads', 'click,buy', '--hints', 'weight=1.5'];
    const ran = await init(...heads, '--rank-by', 'click + weight * buy');
    expect(ran).toMatchObject({ exitCode: 0 });
    const config = readFileSync(join(place(1), 'config.yaml'), 'utf8');
    expect(config).toContain('  - { name: weight, default: 1.5 }\nrankBy: click + weight * buy\n');
  });

  it('takes from a Triton configuration what flags do not say', async () => {
    const { out, init } = given(deepCrossAttention(9, 8, 1).graph);
    const pbtxt = join(out, '..', 'config.pbtxt');
    const sides = ['--candidate-inputs', 'item', '--config-pbtxt', pbtxt, '--json'];
    writeFileSync(pbtxt, 'max_batch_size: 24 input { name: "history" data_type: TYPE_FP32 dims: [ 6, 8 ] }');
    const ran = JSON.parse((await init(...sides)).out);
    expect(ran).toMatchObject({
      limits: { candidatesMax: 24 },
      inputs: [{ name: 'history', shape: [6, 8] }, {}, {}],
    });
    const said = JSON.parse(
      (await init(...sides, '--size', 'T=5', '--candidates-max', '32', '--family', 'other')).out,
    );
    expect(said).toMatchObject({ limits: { candidatesMax: 32 }, inputs: [{ shape: [5, 8] }, {}, {}] });
    writeFileSync(pbtxt, 'input {\n name: "history" dims 6 }');
    const refused = await init(...sides);
    expect(refused).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/config\.pbtxt: line 2 has a value without a colon/),
    });
  });

  it('takes the next number, and replaces a version only when it is told to', async () => {
    const { out, init, place } = given(sumOfLayers('one'));
    await init();
    expect((await init('--json')).out).toContain('"version":2');
    const again = await init('--model-version', '2', '--seed', '5');
    expect(again).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/is there already.*feed\/2.*--force/),
    });
    writeFileSync(join(place(2), 'mine.txt'), 'mine');
    expect(await init('--model-version', '2', '--seed', '5', '--force')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(place(2)).sort()).toEqual(FILES);
    expect(readdirSync(out)).toEqual(['feed']);
  });

  it('refuses a model of other inputs than its family, and leaves nothing behind', async () => {
    const { out, init, place } = given(sumOfLayers('one'));
    await init();
    const other = given(pooledHistory());
    const file = join(other.out, '..', 'given.onnx');
    const ran = await millrace([
      'model',
      'init',
      file,
      '--family',
      'feed',
      '--out',
      out,
      '--candidate-inputs',
      'item',
    ]);
    expect(ran).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/feed\/2 takes other inputs than feed\/1.*--family/),
    });
    expect(existsSync(place(2))).toBe(false);
    expect(readdirSync(out)).toEqual(['feed']);
  });

  it.each<[string, OnnxGraph, string[], RegExp]>([
    ['shapes that do not tell', sumOfLayers('each'), [], /shapes do not tell.*--request-inputs user/],
    [
      'an input that the model has not',
      sumOfLayers('one'),
      ['--request-inputs', 'me'],
      /no such input.*"me".*user, item/,
    ],
    ['a pair that is none', sumOfLayers('one'), ['--size', 'T'], /--size cannot be read.*"T"/],
    ['a size that is none', sumOfLayers('one'), ['--size', 'T=0'], /--size cannot be read.*"T=0"/],
    [
      'a hint without a number',
      sumOfLayers('one'),
      ['--hints', 'w=much'],
      /--hints cannot be read.*"w=much"/,
    ],
    ['a pair twice', sumOfLayers('one'), ['--hints', 'w=1,w=2'], /--hints cannot be read.*"w=2"/],
    ['a size that no input has', sumOfLayers('one'), ['--size', 'T=4'], /no input has such an axis.*"T=4"/],
    [
      'a hint that is a head',
      sumOfLayers('one'),
      ['--heads', 'w', '--hints', 'w=1'],
      /both a head and a hint/,
    ],
    ['a head that is no name', sumOfLayers('one'), ['--heads', 'a-b', '--rank-by', '1'], /heads\[0\]\.name/],
    ['a limit of no candidates', sumOfLayers('one'), ['--candidates-max', '0'], /whole number from 1/],
  ])('refuses %s, and writes nothing', async (_, graph, flags, reason) => {
    const { out, init } = given(graph);
    const ran = await init(...flags);
    expect(ran).toMatchObject({ exitCode: 2, err: expect.stringMatching(reason) });
    expect(existsSync(join(out, 'feed'))).toBe(false);
  });

  it('refuses a name that is no family’s, and a place that is none', async () => {
    const { out, init } = given(sumOfLayers('one'));
    expect((await init('--family', '../feed')).err).toMatch(/no name of a model family.*"\.\.\/feed"/);
    mkdirSync(join(out, '..', 'taken'));
    writeFileSync(join(out, '..', 'taken', 'file'), '');
    const ran = await init('--out', join(out, '..', 'taken', 'file'));
    expect(ran).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/cannot be (written|listed): .*no folder/),
    });
  });
});
