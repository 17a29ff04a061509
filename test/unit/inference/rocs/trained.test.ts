import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { readGraph } from '../../../../src/inference/onnx-file/read-graph.ts';
import { openForms } from '../../../../src/inference/rocs/forms.ts';
import { verifyForms } from '../../../../src/inference/rocs/verify.ts';

const FOLDER = join(import.meta.dirname, '../../../../models/exported');
const GROUPS = [['user', 'history', 'history_length'], ['item']];

/** With how many tensors of a request its candidates need: all that each layer's mask leaves to them; without one the first layer's share alone. */
const MODELS: [name: string, artefact: number, usesTiles: boolean][] = [
  ['dca', 17, true],
  ['dcn', 1, false],
  ['glm', 6, false],
  ['two-tower', 1, false],
];

test('every exported model is held here', () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.onnx'));
  expect(files.sort()).toEqual(MODELS.map(([name]) => `${name}.onnx`));
});

describe('the committed models as they were exported', () => {
  test.each(MODELS)('%s compiles to forms with the same scores', async (name, artefact, usesTiles) => {
    const graph = readGraph(readFileSync(join(FOLDER, `${name}.onnx`)));
    const forms = await openForms(graph, GROUPS, { strict: true });
    const random = seededRandom(1).stream('trial');
    const { batches, difference, twoGraphs } = await verifyForms(forms, graph, GROUPS, random);
    expect(twoGraphs).toEqual({ sameBits: true, difference: 0 });
    expect(batches).toBe(11);
    expect(difference).toBeLessThan(1e-5);
    expect(forms.sides.artefact).toHaveLength(artefact);
    expect(forms.compiled.usesTiles).toBe(usesTiles);
    await forms.close();
  });
});
