import { expect, onTestFinished, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { openForms, type TrialArtefact } from '../../../../src/inference/rocs/forms.ts';
import { type TrialBatch, type TrialTensor, trialBatch } from '../../../../src/inference/rocs/trial-batch.ts';
import { crossNetwork, layered, type Model, perceptron, sumOfProducts } from './models.ts';

const CANDIDATES = 8;

/** One request of a batch, whose candidates take turns. */
function alone({ feeds, requests }: TrialBatch, { groups }: Model, request: number): TrialBatch {
  const own = Array.from({ length: CANDIDATES }, (_, k) => k * requests + request);
  const rowsOf = (name: string) => (groups[0]?.includes(name) ? [request] : own);
  return {
    requests: 1,
    requestOf: own.map(() => 0),
    feeds: Object.fromEntries(
      Object.entries(feeds).map(([name, tensor]) => [name, picked(tensor, rowsOf(name))]),
    ),
  };
}

function picked({ data, dims, type }: TrialTensor, rows: readonly number[]): TrialTensor {
  const width = data.length / (dims[0] ?? 1);
  const numbers = rows.flatMap((row) => [...(data as Float32Array).subarray(row * width, (row + 1) * width)]);
  return { type, data: Float32Array.from(numbers), dims: [rows.length, ...dims.slice(1)] };
}

/** Puts a request's own artefact in the place of what the batch computed. @returns whether it was the same bits */
function replaced(batch: TrialArtefact, own: TrialArtefact, request: number): boolean {
  let isSame = true;
  for (const [name, { data }] of Object.entries(own)) {
    const values = data as Float32Array;
    const rows = batch[name]?.data as Float32Array;
    const row = rows.subarray(request * values.length, (request + 1) * values.length);
    isSame &&= values.length > 0 && values.every((value, k) => Object.is(value, row[k]));
    row.set(values);
  }
  return isSame;
}

test.each<[string, Model]>([
  ['layers', layered(64, 32, [32, 1])],
  ['a perceptron of 1 023', perceptron(1_023, 16, 63)],
  ['products of 1 024 terms', sumOfProducts(1_024, 16, 64)],
  ['cross layers', crossNetwork(384, 128, 3)],
])(
  "a request's artefact has the same bits in whatever batch it is made, and so have scores of it: %s",
  async (_, model) => {
    const forms = await openForms(model.graph, model.groups, { strict: false });
    onTestFinished(() => forms.close());
    for (const requests of [2, 3, 8, 17]) {
      const requestOf = Array.from({ length: requests * CANDIDATES }, (_row, k) => k % requests);
      const sizes = { requests, requestOf, sequence: 1 };
      const batch = trialBatch(model.graph, model.groups, sizes, seededRandom(requests).stream('trial'));
      const prepared = forms.prepare(batch);
      const artefact = await forms.run.artefact(prepared);
      for (let request = 0; request < requests; request += 1) {
        const own = await forms.run.artefact(forms.prepare(alone(batch, model, request)));
        expect(replaced(artefact, own, request)).toBe(true);
      }
      expect(await forms.run.candidate(prepared, artefact)).toEqual(await forms.run.shared(prepared));
    }
  },
);
