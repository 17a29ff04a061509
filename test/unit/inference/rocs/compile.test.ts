import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { compileGraph } from '../../../../src/inference/rocs/compile.ts';
import { differenceOf } from '../../../../src/inference/rocs/verify.ts';
import { answersOf, batchOf, openForms } from './compare.ts';
import {
  crossNetwork,
  deepCrossAttention,
  factorizationMachine,
  linearCompression,
  type Model,
  perceptron,
  twoTowers,
} from './models.ts';

const MODELS: [string, () => Model][] = [
  ['a masked cross network', () => crossNetwork(24, 8, 3)],
  ['a perceptron', () => perceptron(20, 10, 16)],
  ['two towers', () => twoTowers(30, 10, 16)],
  ['a factorization machine', () => factorizationMachine(4, 2, 8)],
  ['a linear compression of stacked fields', () => linearCompression(5, 3, 8)],
  ['attention over a sequence', () => deepCrossAttention(20, 16, 2)],
  ['attention with heads', () => deepCrossAttention(20, 16, 2, 4)],
  ['attention over a sequence of fixed length', () => deepCrossAttention(9, 16, 1, 4, true)],
];

describe.each(MODELS)('%s', (_, make) => {
  test('gives what it gave, for 1 to 1 024 candidates of one request', async () => {
    const forms = await openForms(make());
    const random = seededRandom(1).stream('values');
    for (const candidates of [1, 2, 3, 7, 31, 32, 33, 100, 256, 1_024]) {
      const answers = await answersOf(forms, batchOf(forms.model, new Array(candidates).fill(0), 1, random));
      expect(answers.naive.size).toBe(1);
      expect(differenceOf(answers.naive, answers.shared)).toBeLessThan(1e-5);
      expect(differenceOf(answers.naive, answers.copies)).toBeLessThan(1e-5);
      expect(differenceOf(answers.shared, answers.cut)).toBe(0);
    }
  });

  test('gives what it gave, for batches of mixed requests in any order', async () => {
    const forms = await openForms(make());
    const counts = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60 })), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(counts, fc.integer(), async (each, seed) => {
        const random = seededRandom(seed).stream('values');
        const requestOf = each.flatMap((count, request) => new Array<number>(count).fill(request));
        fc.pre(requestOf.length > 0);
        shuffle(requestOf, random);
        const answers = await answersOf(forms, batchOf(forms.model, requestOf, each.length, random));
        expect(differenceOf(answers.naive, answers.shared)).toBeLessThan(1e-5);
        expect(differenceOf(answers.shared, answers.cut)).toBe(0);
      }),
      { numRuns: 20 },
    );
  });

  test('a candidate changes neither the artefact nor the scores of others', async () => {
    const forms = await openForms(make());
    const random = seededRandom(3).stream('values');
    const requestOf = [0, 1, 1, 0, 2, 1, 0];
    const batch = batchOf(forms.model, requestOf, 3, random);
    const before = await answersOf(forms, batch);
    const item = batch.feeds.item;
    if (item === undefined || !(item.data instanceof Float32Array)) throw new TypeError('no item');
    const width = item.data.length / requestOf.length;
    const perturbed = 2;
    item.data.subarray(perturbed * width, (perturbed + 1) * width).fill(0.7);
    const after = await answersOf(forms, batch);
    for (const [name, values] of before.artefact) expect(after.artefact.get(name)).toEqual(values);
    for (const [name, values] of before.shared) {
      const now = after.shared.get(name) ?? new Float32Array();
      const size = values.length / requestOf.length;
      values.forEach((value, n) => {
        if (Math.floor(n / size) === perturbed) expect(now[n]).not.toBe(value);
        else expect(now[n]).toBe(value);
      });
    }
  });
});

function shuffle(values: number[], random: { next(): number }): void {
  for (let n = values.length - 1; n > 0; n -= 1) {
    const other = Math.floor(random.next() * (n + 1));
    [values[n], values[other]] = [values[other] ?? 0, values[n] ?? 0];
  }
}

describe('what is computed once per request', () => {
  test('all layers of a masked cross network but its candidates', () => {
    const { graph, groups } = crossNetwork(24, 8, 3);
    const compiled = compileGraph(graph, groups, { strict: true, attention: 'tiles' });
    const byLevel = (level: number) =>
      compiled.graph.nodes.filter((node) => node.level === level && node.op === 'Gemm').length;
    // three layers for the request's own columns, three and the top one for what it gives to its candidates
    expect(byLevel(0)).toBe(7);
    expect(compiled.usesTiles).toBe(false);
  });

  test('keys and values are gathered per tile and never per candidate', () => {
    const { graph, groups } = deepCrossAttention(20, 16, 2, 4);
    const { graph: compiled, usesTiles } = compileGraph(graph, groups, { strict: true, attention: 'tiles' });
    expect(usesTiles).toBe(true);
    const gathers = compiled.nodes.filter(
      ({ op, inputs }) => op === 'Gather' && inputs[1] === 'request_index',
    );
    const perTile = compiled.nodes.filter(
      ({ op, inputs }) => op === 'Gather' && inputs[1] === 'tile_request',
    );
    expect(perTile).toHaveLength(4);
    // what the user's own features give to each layer
    expect(gathers).toHaveLength(2);
  });
});
