import { describe, expect, onTestFinished, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { type Forms, type Outputs, openForms } from '../../../../src/inference/rocs/forms.ts';
import { verifyForms, verifyOneGraph } from '../../../../src/inference/rocs/verify.ts';
import { crossNetwork, type Model, perceptron, sumOfProducts } from './models.ts';

const random = () => seededRandom(1).stream('trial');

async function opened({ graph, groups }: Model): Promise<Forms> {
  const forms = await openForms(graph, groups, { strict: true });
  onTestFinished(() => forms.close());
  return forms;
}

/** Every score times a factor. */
function times(outputs: Outputs, factor: number): Outputs {
  return new Map([...outputs].map(([name, values]) => [name, values.map((value) => value * factor)]));
}

function withOtherCandidateGraph(forms: Forms, factor: number): Forms {
  const { run } = forms;
  return {
    ...forms,
    run: { ...run, candidate: async (...args) => times(await run.candidate(...args), factor) },
  };
}

describe('the two graphs of a compiled model', () => {
  test.each<[string, Model]>([
    ['products of 512 terms that are added', sumOfProducts(16, 512, 64)],
    ['products of 1 024 terms that are added', sumOfProducts(16, 1_024, 64)],
    ['a perceptron with items of 1 024', perceptron(16, 1_024, 64)],
    ['cross layers with items of 512', crossNetwork(64, 512, 2)],
  ])('give the same bits as the one: %s', async (_, model) => {
    const verified = await verifyForms(await opened(model), model.graph, model.groups, random());
    expect(verified.difference).toBeLessThan(1e-5);
    expect(verified.twoGraphs).toEqual({ sameBits: true, difference: 0 });
  });

  test('may round otherwise, which is said', async () => {
    const model = sumOfProducts(8, 8, 4);
    const forms = withOtherCandidateGraph(await opened(model), 1 + 2 ** -22);
    const { twoGraphs } = await verifyForms(forms, model.graph, model.groups, random());
    expect(twoGraphs.sameBits).toBe(false);
    expect(twoGraphs.difference).toBeGreaterThan(0);
    expect(twoGraphs.difference).toBeLessThan(1e-6);
  });

  test.each([
    ['by more than rounding', 1.0001],
    ['by what is no number', Number.NaN],
  ])('may not differ %s; the limit that is named is the one that was asked', async (_, factor) => {
    const model = sumOfProducts(8, 8, 4);
    const forms = withOtherCandidateGraph(await opened(model), factor);
    await expect(verifyForms(forms, model.graph, model.groups, random())).rejects.toThrow(
      /one graph and two graphs give different scores .*allowed: up to 0\.00001 of the largest score\).*--no-share/,
    );
  });
});

test('the one graph alone is held against the model as it was given', async () => {
  const model = perceptron(8, 8, 4);
  const forms = await opened(model);
  expect(await verifyOneGraph(forms, model.graph, model.groups, random())).toEqual({
    batches: 11,
    difference: expect.any(Number),
  });
  const { run } = forms;
  const other = {
    ...forms,
    run: { ...run, naive: async (batch: never) => times(await run.naive(batch), 1.001) },
  };
  await expect(verifyOneGraph(other, model.graph, model.groups, random())).rejects.toThrow(
    /the model as given and the compiled one give different scores/,
  );
});
