import { MillraceError } from '../core/errors.ts';
import type { Accelerator, ItemResult, LoadedModel, ScoreItem } from '../ports/accelerator.ts';
import { emptyResult } from './item-scores.ts';
import type { ModelVersion } from './repository/model-version.ts';
import type { ModelRepository } from './repository/open-repository.ts';

const CONSTANT_SCORE = 0.5;

/**
 * Answers at once with the same score for every candidate, reads no tensor and runs any kernel: what is left of a pipeline's time is the pipeline's own.
 */
export function createImmediateAccelerator({ repository }: { repository: ModelRepository }): Accelerator {
  return {
    capabilities: {
      backend: 'immediate',
      simulated: true,
      kernels: ['dense', 'sparse', 'attention', 'bias-fused'],
      memories: ['hbm', 'l2', 'host'],
      datatypes: ['FP32', 'INT64'],
    },
    failed: new Promise(() => undefined),
    async load(family, version) {
      return immediateModel(repository.version(family, version));
    },
    async close() {},
  };
}

function immediateModel(version: ModelVersion): LoadedModel {
  let unloaded = false;
  const constants = new Constants();
  return {
    family: version.family,
    version: version.version,
    variant: version.variant,
    async run(items) {
      if (unloaded) throw new MillraceError('CLOSED', 'the model is unloaded');
      return {
        items: items.map((item) => constantResult(version, item, constants)),
        computeMs: 0,
        bytesMoved: 0,
      };
    },
    predictMs: () => 0,
    async unload() {
      unloaded = true;
    },
  };
}

function constantResult(version: ModelVersion, { scoreLimit }: ScoreItem, constants: Constants): ItemResult {
  if (scoreLimit === 0) return emptyResult(version);
  const scores = constants.take(scoreLimit);
  return {
    status: 'scored',
    scores: { heads: version.heads.map(({ name }) => ({ name, values: scores })), scores },
  };
}

/** As many constant scores as were ever asked for, once: results share them. */
class Constants {
  #values = new Float32Array(0);

  take(count: number): Float32Array {
    if (this.#values.length < count) this.#values = new Float32Array(count * 2).fill(CONSTANT_SCORE);
    return this.#values.subarray(0, count);
  }
}
