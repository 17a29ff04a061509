import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { readGraph } from '../../../../src/inference/onnx-file/read-graph.ts';
import { openForms } from '../../../../src/inference/rocs/forms.ts';
import { verifyForms } from '../../../../src/inference/rocs/verify.ts';

/** Written by PyTorch's exporter (exported/export.py), with how many tensors of the request candidates need. */
const MODELS: [name: string, groups: string[][], artefact: number, usesTiles: boolean][] = [
  ['cross-network', [['user'], ['item']], 4, false],
  ['cross-attention', [['user', 'history', 'history_length'], ['item']], 7, true],
  ['embeddings', [['user'], ['item']], 1, false],
];

describe('models as PyTorch exports them', () => {
  test.each(MODELS)('%s', async (name, groups, artefact, usesTiles) => {
    const graph = readGraph(readFileSync(`${import.meta.dirname}/exported/${name}.onnx`));
    const forms = await openForms(graph, groups, { strict: true });
    const random = seededRandom(1).stream('trial');
    const { batches, difference, twoGraphs } = await verifyForms(forms, graph, groups, random);
    expect(twoGraphs).toEqual({ sameBits: true, difference: 0 });
    expect(batches).toBe(11);
    expect(difference).toBeLessThan(1e-5);
    expect(forms.sides.artefact).toHaveLength(artefact);
    expect(forms.compiled.usesTiles).toBe(usesTiles);
    await forms.close();
  });
});
