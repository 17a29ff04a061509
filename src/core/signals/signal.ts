import type { RequestView } from './request-view.ts';

/** A cheap number read off a request. Its name is the one that the signal table exports it by. */
export interface Signal {
  /** Raised whenever the formula changes. */
  readonly version: number;
  /** How policies declare it. */
  readonly type: 'double' | 'int';
  /** `1` for a ratio or a pure number. */
  readonly unit: string;
  /** What one reading may take, microseconds; at most 100. */
  readonly costBudgetUs: number;
  /** Formula, range, and what NaN means. */
  readonly docs: string;
  /** Pure; NaN where the signal cannot be computed. */
  readonly read: (view: RequestView) => number;
}

export const COST_BUDGET_US_MAX = 100;
