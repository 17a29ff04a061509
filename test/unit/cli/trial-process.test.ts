import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { OnnxGraph } from '../../../src/inference/onnx-file/graph.ts';
import { intAttribute, writeGraph } from '../../../src/inference/onnx-file/write-graph.ts';
import { sumOfLayers, withShapes } from '../inference/new-version/small-models.ts';
import { GraphBuilder } from '../inference/rocs/graph-builder.ts';
import { crossNetwork } from '../inference/rocs/models.ts';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const LIMIT_MS = 60_000;

/** A few hundred bytes that ask for 8 GB: a constant of 40 000 × 50 000, of which the mean counts. */
function hugeConstant(): OnnxGraph {
  const b = new GraphBuilder();
  const one = b.node('Cast', [b.numbers(1)], [intAttribute('to', 1)]);
  const huge = b.node('Expand', [one, b.numbers(40_000, 50_000)]);
  const mean = b.node('ReduceMean', [huge, b.numbers(0, 1)], [intAttribute('keepdims', 0)]);
  const both = b.node('Mul', [b.input('user', 1), b.input('item', 1)]);
  return withShapes(b.build({ from: b.node('Add', [both, mean]), shape: [1] }), { user: [1, 1] });
}

/** Rows of 160 MB. */
function hugeRows(): OnnxGraph {
  const b = new GraphBuilder();
  const [user, item] = [b.input('user', 40_000_000), b.input('item', 1)];
  const mean = b.node('ReduceMean', [user, b.numbers(1)], [intAttribute('keepdims', 1)]);
  return b.build({ from: b.node('Mul', [mean, item]), shape: [1] });
}

function given(model: Uint8Array) {
  const folder = temporaryFolder();
  const file = folder.path('given.onnx');
  writeFileSync(file, model);
  const out = folder.path('out');
  return {
    out,
    init: (...flags: string[]) =>
      millrace(['model', 'init', file, '--family', 'feed', '--out', out, ...flags]),
    compile: (...flags: string[]) => {
      const sides = ['--request-inputs', 'user', '--candidate-inputs', 'item', '--no-measure'];
      return millrace(['model', 'compile', file, ...sides, '--out', out, ...flags]);
    },
  };
}

describe('a model that is tried', () => {
  it.each([
    ['init', hugeConstant()],
    ['compile', hugeRows()],
  ] as const)(
    'is ended by model %s where it takes more memory than it may, and leaves nothing',
    async (command, graph) => {
      const place = given(writeGraph(graph));
      const before = process.memoryUsage.rss();
      const ran = await place[command]('--memory-max', '600');
      expect(ran).toMatchObject({
        exitCode: 2,
        err: expect.stringMatching(
          /took too much memory, and was ended .*allowed: 600 MiB \(--memory-max\)\)\. .*--memory-max 1200/,
        ),
      });
      expect(process.memoryUsage.rss() - before).toBeLessThan(1e9);
      expect(existsSync(place.out)).toBe(false);
    },
    LIMIT_MS,
  );

  it.each([
    ['init', sumOfLayers('one')],
    ['compile', crossNetwork(24, 8, 1).graph],
  ] as const)(
    'is ended by model %s where it takes longer than it may, and leaves nothing',
    async (command, graph) => {
      const place = given(writeGraph(graph));
      const ran = await place[command]('--time-max', '10ms');
      expect(ran).toMatchObject({
        exitCode: 2,
        err: expect.stringMatching(/took too long, and was ended .*0\.01 s \(--time-max\)/),
      });
      expect(existsSync(place.out)).toBe(false);
    },
    LIMIT_MS,
  );

  it('is refused for what it is refused for in this process', async () => {
    const ran = await given(writeGraph(sumOfLayers('one'))).init('--heads', 'a,b,c');
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toMatch(/^millrace: .*heads?/);
    expect(ran.err).not.toContain('not foreseen');
  });

  it.each([
    ['--memory-max', '0', /whole number from 1/],
    ['--time-max', '0s', /above 0/],
  ])('has bounds: %s %s is refused', async (flag, value, reason) => {
    const ran = await given(writeGraph(sumOfLayers('one'))).init(flag, value);
    expect(ran).toMatchObject({ exitCode: 2, err: expect.stringMatching(reason) });
  });
});
