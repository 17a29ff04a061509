import { MillraceError } from '../errors.ts';

/** coefficient · N^candidates · T^rows */
export interface CostTerm {
  readonly coefficient: number;
  readonly candidates: number;
  readonly rows: number;
}

/** Predicts what one request costs alone, in milliseconds; fitted by least squares over measured shapes. */
export interface CostModel {
  readonly terms: readonly CostTerm[];
  /** Of a cascade: what runs before it, the first first. */
  readonly before?: readonly StageCost[];
}

/** A stage of a cascade, and how many of its candidates go on at most. */
export interface StageCost {
  readonly model: CostModel;
  readonly keep: number;
}

export const COST_MODEL_BYTES_MAX = 2048;
const FORMAT = 1;
const FACTORS_MAX = 4;
const ADVICE = '`millrace model init` fits one; models/README.md has the format.';

/**
 * Reads a cost model: `{format: 1, unit: "ms", features: ["1", "N", "N*T"], coefficients: [..]}`. A feature is `1` or a product of
 * `N` (candidates) and `T` (rows of the longest sequence). Other keys tell people about the fit and are not read.
 * @throws MillraceError INVALID_MODEL for what is not such a document, or larger than 2 KB.
 */
export function parseCostModel(document: unknown): CostModel {
  if (!isRecord(document)) throw invalid('a cost model is no object', document, 'an object');
  const size = JSON.stringify(document).length;
  if (size > COST_MODEL_BYTES_MAX)
    throw invalid(
      'a cost model is too large',
      `${size} bytes`,
      `at most ${COST_MODEL_BYTES_MAX} bytes of JSON`,
    );
  const { format, unit, features, coefficients } = document;
  if (format !== FORMAT) throw invalid('a cost model has a format that is not known', format, String(FORMAT));
  if (unit !== 'ms') throw invalid('a cost model has a unit that is not known', unit, '"ms"');
  if (!Array.isArray(features) || features.length === 0)
    throw invalid('a cost model has no features', features, 'a list such as ["1", "N", "N*T"]');
  if (!Array.isArray(coefficients) || coefficients.length !== features.length)
    throw invalid(
      'a cost model does not have one coefficient per feature',
      coefficients,
      `${features.length} numbers`,
    );
  return { terms: features.map((feature: unknown, index) => parseTerm(feature, coefficients[index])) };
}

function parseTerm(feature: unknown, coefficient: unknown): CostTerm {
  if (typeof coefficient !== 'number' || !Number.isFinite(coefficient))
    throw invalid('a cost model has a coefficient that is no number', coefficient, 'finite numbers');
  const factors = typeof feature === 'string' ? feature.split('*') : [];
  const candidates = factors.filter((factor) => factor === 'N').length;
  const rows = factors.filter((factor) => factor === 'T').length;
  const known = feature === '1' || candidates + rows === factors.length;
  if (factors.length === 0 || factors.length > FACTORS_MAX || !known)
    throw invalid(
      'a cost model has a feature that is not known',
      feature,
      '"1", or up to 4 of N and T joined by *',
    );
  return { coefficient, candidates, rows };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(what: string, value: unknown, allowed: string): MillraceError {
  return new MillraceError('INVALID_MODEL', what, { value, allowed, advice: ADVICE });
}

/**
 * Σ coefficient · N^candidates · T^rows in ms, and 0 where a fit runs below 0 outside the shapes it was made on; with what the stages before it
 * cost, each for the candidates that it gets.
 */
export function predictCostMs(model: CostModel, candidateCount: number, sequenceRows: number): number {
  if (model.before === undefined) return ownCostMs(model, candidateCount, sequenceRows);
  let candidates = candidateCount;
  let beforeMs = 0;
  for (const stage of model.before) {
    beforeMs += ownCostMs(stage.model, candidates, sequenceRows);
    candidates = Math.min(candidates, stage.keep);
  }
  return beforeMs + ownCostMs(model, candidates, sequenceRows);
}

function ownCostMs(model: CostModel, candidateCount: number, sequenceRows: number): number {
  let costMs = 0;
  for (const term of model.terms)
    costMs += term.coefficient * candidateCount ** term.candidates * sequenceRows ** term.rows;
  return Math.max(0, costMs);
}
