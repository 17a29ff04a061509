import { type Forms, type Outputs, openForms as open } from '../../../../src/inference/rocs/forms.ts';
import { type TrialBatch, trialBatch } from '../../../../src/inference/rocs/trial-batch.ts';
import type { Model } from './models.ts';

export interface OpenModel extends Forms {
  model: Model;
}

export async function openForms(model: Model): Promise<OpenModel> {
  return { ...(await open(model.graph, model.groups, { strict: true })), model };
}

/** @param requestOf by candidate */
export function batchOf(
  { graph, groups }: Model,
  requestOf: readonly number[],
  requests: number,
  random: { next(): number },
): TrialBatch {
  return trialBatch(graph, groups, { requests, requestOf, sequence: 9 }, random);
}

export interface Answers {
  naive: Outputs;
  copies: Outputs;
  shared: Outputs;
  cut: Outputs;
  artefact: Map<string, unknown>;
}

/** What each form gives for one batch. */
export async function answersOf({ run, prepare }: OpenModel, batch: TrialBatch): Promise<Answers> {
  const prepared = prepare(batch);
  const artefact = await run.artefact(prepared);
  return {
    naive: await run.naive(prepared),
    copies: await run.copies(prepared),
    shared: await run.shared(prepared),
    cut: await run.candidate(prepared, artefact),
    artefact: new Map(Object.entries(artefact).map(([name, { data }]) => [name, data])),
  };
}
