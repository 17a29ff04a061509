import type { Dispatch, ScoreRequest } from '../../contracts/records.ts';
import type { LoadedModel, ScoreItem } from '../../ports/accelerator.ts';
import type { Delivery } from '../run-stage.ts';
import type { SourcedRows } from './sourced-rows.ts';

/** A dispatch that the worker took up, and the model that scores it. */
export interface WorkerJob {
  delivery: Delivery<Dispatch>;
  request: ScoreRequest;
  model: LoadedModel;
  /** How often the model failed on it alone. */
  failures: number;
  /** What was read of inputs that were not sent; undefined where all were. */
  rows?: SourcedRows | undefined;
}

export function itemOf({ request, delivery, rows }: WorkerJob): ScoreItem {
  const { requestTensors, candidateTensors } = request;
  return {
    requestTensors: rows === undefined ? requestTensors : [...requestTensors, ...rows.requestTensors],
    candidateTensors: rows === undefined ? candidateTensors : [...candidateTensors, ...rows.candidateTensors],
    candidateIds: request.candidateIds,
    hints: request.hints,
    scoreLimit: delivery.value.scoreLimit,
  };
}

/** The kernel that is named, where it can run the model; else the model's first. */
export function kernelFor({ kernels }: LoadedModel, wanted: string): string {
  return kernels === undefined || kernels.includes(wanted) ? wanted : (kernels[0] ?? wanted);
}
