import type { ItemResult, LoadedModel } from '../../src/ports/accelerator.ts';

/** A request with this hint set to 1 makes the batch that it is in fail, every time. */
export const POISON_HINT = 'poison';

export interface Faults {
  isFailing(): boolean;
  /** On every head's scores. */
  scoreFactor(): number;
}

/** The model on a device that fails when it says so, and on poison; and that scores otherwise where it is told to. */
export function faultyModel(model: LoadedModel, { isFailing, scoreFactor }: Faults): LoadedModel {
  return {
    family: model.family,
    version: model.version,
    variant: model.variant,
    predictMs: (requests, candidates) => model.predictMs(requests, candidates),
    unload: () => model.unload(),
    async run(items, kernel, memory) {
      const result = await model.run(items, kernel, memory);
      if (items.some(({ hints }) => hints[POISON_HINT] === 1)) throw new Error('poisoned');
      if (isFailing()) throw new Error('a passing fault');
      const factor = scoreFactor();
      return factor === 1 ? result : { ...result, items: result.items.map((item) => scaled(item, factor)) };
    },
  };
}

function scaled(item: ItemResult, factor: number): ItemResult {
  if (item.status !== 'scored') return item;
  const heads = item.scores.heads.map((head) => ({
    ...head,
    values: head.values.map((value) => value * factor),
  }));
  return { ...item, scores: { ...item.scores, heads } };
}
