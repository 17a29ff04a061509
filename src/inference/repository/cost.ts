import { z } from 'zod';
import { type CostModel, predictCostMs } from '../../core/signals/cost-model.ts';
import { strictObject } from './strict-object.ts';

/** cost.json of a model version, format 1 (models/README.md); what is in features and coefficients, `parseCostModel` checks. */
export const costSchema = strictObject({
  format: z.literal(1),
  family: z.string(),
  version: z.int(),
  unit: z.literal('ms'),
  features: z.array(z.string()),
  coefficients: z.array(z.number()),
  medianRelativeError: z.number().optional(),
  p95RelativeError: z.number().optional(),
  /** Of one that live batches were fitted to: root of the mean square. */
  rmsRelativeError: z.number().optional(),
  measured: z.record(z.string(), z.number()).optional(),
  /** Where the grid's median is not it. */
  typicalRows: z.int().min(0).optional(),
  grid: z.looseObject({ N: z.array(z.int()).min(1), T: z.array(z.int()).min(1) }),
  machine: z.string(),
});

/** Rows of a sequence that is assumed where nothing is known of the request: what the file says, else the median of those that the model was fitted on. */
export function typicalRows(cost: z.output<typeof costSchema>): number {
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
