import type { AcceleratorCapabilities, LoadedModel, ScoreItem } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ItemMaker } from './made-item.ts';

/** A version that is measured, and with what. */
export interface Measuring {
  readonly version: ModelVersion;
  readonly model: LoadedModel;
  readonly capabilities: Pick<AcceleratorCapabilities, 'kernels' | 'memories'>;
  readonly items: ItemMaker;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** About how long for all of it. */
  readonly measureMs: number;
}

export interface Target {
  readonly kernel: string;
  readonly memory: string;
}

/** A clock may not tell two moments apart. */
export const MS_MIN = 1e-6;
const DIGITS = 4;

/** Rows of the sequences of a request of which nothing is known; a required sequence has one at least. */
export function usualRows({ items, version: { typicalRows, limits } }: Measuring): number {
  if (!items.hasSequence) return 0;
  return Math.min(Math.max(typicalRows, items.mayBeWithoutRows ? 0 : 1), limits.sequenceLengthMax);
}

export function kernelsOf({ model, capabilities }: Measuring): readonly string[] {
  return model.kernels ?? capabilities.kernels;
}

/** What a batch takes on the accelerator. @throws what a request failed with, where one did: its time would be no measure of anything */
export async function computeMs(
  model: LoadedModel,
  items: readonly ScoreItem[],
  { kernel, memory }: Target,
): Promise<number> {
  const batch = await model.run(items, kernel, memory);
  for (const item of batch.items) if (item.status === 'failed') throw item.error;
  return batch.computeMs;
}

/** A measured time has no more digits. */
export function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
