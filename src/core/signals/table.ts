// The signal table: one line per signal. The name that a signal is exported by is the name that policies use.
export { activationBytes } from './activation-bytes.ts';
export { attentionHeadVariance } from './attention-head-variance.ts';
export { biasMax } from './bias-max.ts';
export { candidateCount } from './candidate-count.ts';
export { embeddingNorm } from './embedding-norm.ts';
export { nonZeroShare } from './non-zero-share.ts';
export { predictedCostMs } from './predicted-cost-ms.ts';
export { sequenceLength } from './sequence-length.ts';
export { sparsityRatio } from './sparsity-ratio.ts';
