import type { LoadedModel } from '../../ports/accelerator.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { FeatureUse } from './sourced-rows.ts';

const READ_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];

/** Counts the rows that default rows stand in for. */
export function countDefaultRows(
  pool: string,
  telemetry: Telemetry,
): (model: LoadedModel, use: FeatureUse) => void {
  const rows = telemetry.counter({
    name: 'millrace_default_rows_total',
    help: 'Rows that a default row stood in for, by pool, model, and why the feature source had none: missing, stale, invalid or unavailable.',
    labels: ['pool', 'model', 'reason'],
  });
  return ({ family: model }, { reasons }) => {
    for (const [reason, count] of reasons) rows.add(count, { pool, model, reason });
  };
}

export function measureReads(
  pool: string,
  telemetry: Telemetry,
): (outcome: 'read' | 'failed', ms: number) => void {
  const seconds = telemetry.histogram({
    name: 'millrace_feature_read_seconds',
    help: 'Round trips to the feature source, by pool and outcome.',
    labels: ['pool', 'outcome'],
    buckets: READ_SECONDS,
  });
  return (outcome, ms) => seconds.observe(ms / 1_000, { pool, outcome });
}
