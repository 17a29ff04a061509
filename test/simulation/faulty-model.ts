import type { LoadedModel } from '../../src/ports/accelerator.ts';

/** A request with this hint set to 1 makes the batch that it is in fail, every time. */
export const POISON_HINT = 'poison';

/** The model on a device that fails when it says so, and on poison. */
export function faultyModel(model: LoadedModel, isFailing: () => boolean): LoadedModel {
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
      return result;
    },
  };
}
