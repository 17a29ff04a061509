import * as v from 'valibot';
import { closedObject, finite, recordOf, whole } from '../../core/json-values.ts';
import { type CostModel, predictCostMs } from '../../core/signals/cost-model.ts';

/** cost.json of a model version, format 1 (models/README.md); what is in features and coefficients, `parseCostModel` checks. */
export const costSchema = closedObject({
  format: v.literal(1),
  family: v.string(),
  version: whole,
  unit: v.literal('ms'),
  features: v.array(v.string()),
  coefficients: v.array(finite),
  medianRelativeError: v.optional(finite),
  p95RelativeError: v.optional(finite),
  /** Of one that live batches were fitted to: root of the mean square. */
  rmsRelativeError: v.optional(finite),
  measured: v.optional(recordOf(v.string(), finite)),
  /** Where the grid's median is not it. */
  typicalRows: v.optional(v.pipe(whole, v.minValue(0))),
  grid: v.looseObject({
    N: v.pipe(v.array(whole), v.minLength(1)),
    T: v.pipe(v.array(whole), v.minLength(1)),
  }),
  machine: v.string(),
});

/** Rows of a sequence that is assumed where nothing is known of the request: what the file says, else the median of those that the model was fitted on. */
export function typicalRows(cost: v.InferOutput<typeof costSchema>): number {
  if (cost.typicalRows !== undefined) return cost.typicalRows;
  const rows = cost.grid.T.toSorted((a, b) => a - b);
  return rows[rows.length >> 1] ?? 0;
}

/**
 * Expected time of a batch, ms: that of `requests` requests alone, each with the mean number of candidates. With a model that is linear in the
 * candidates this is C_R·requests + C_C·candidates.
 */
export function batchMs(cost: CostModel, rows: number, requests: number, candidates: number): number {
  return requests > 0 ? requests * predictCostMs(cost, candidates / requests, rows) : 0;
}
