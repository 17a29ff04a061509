import { MillraceError } from '../../../../src/core/errors.ts';
import type { BatchResult, ItemResult, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';

/** A batch that runs until the test ends it. */
export interface RunningBatch {
  readonly items: readonly ScoreItem[];
  readonly kernel: string;
  /** Scores every item; `failed` picks, by place, those that fail by themselves. */
  end(options?: { computeMs?: number; bytesMoved?: number; failed?: ReadonlyMap<number, Error> }): void;
  endWith(result: BatchResult): void;
  fail(error?: Error): void;
}

export interface HandDrivenModel extends LoadedModel {
  readonly batches: RunningBatch[];
}

export function scored(candidates: number, score = 0.5): ItemResult {
  const values = (): Float32Array => new Float32Array(candidates).fill(score);
  return { status: 'scored', scores: { heads: [{ name: 'ctr', values: values() }], scores: values() } };
}

/** A model whose batches end when the test says so; a request takes 2 ms and a candidate 1. */
export function handDrivenModel(fields: Partial<LoadedModel> = {}): HandDrivenModel {
  const batches: RunningBatch[] = [];
  return {
    family: 'ranker',
    version: '1',
    variant: 'baseline',
    predictMs: (requests, candidates) => 2 * requests + candidates,
    unload: async () => {},
    ...fields,
    batches,
    run: (items, kernel) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          kernel,
          end: ({ computeMs = 4, bytesMoved = 100, failed } = {}) =>
            resolve({
              items: items.map(({ scoreLimit }, place) => {
                const error = failed?.get(place);
                return error === undefined ? scored(scoreLimit) : { status: 'failed', error };
              }),
              computeMs,
              bytesMoved,
            }),
          endWith: resolve,
          fail: (error = new MillraceError('MODEL_FAILED', 'the device is gone')) => reject(error),
        });
      }),
  };
}
