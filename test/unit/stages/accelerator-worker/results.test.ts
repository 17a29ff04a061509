import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import {
  type Computed,
  failedResult,
  scoredResult,
  unscoredResult,
} from '../../../../src/stages/accelerator-worker/results.ts';
import { numbers, texts } from '../../core/request/requests.ts';
import { delivery, dispatch, scoreRequest } from '../records.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';

function computed(fields: Partial<Computed> = {}, of: Parameters<typeof dispatch>[0] = {}): Computed {
  return {
    delivery: delivery(dispatch({ inTopicMs: 4, extractMs: 1, routeMs: 2, ...of }), {
      receivedAtMs: 100,
      inTopicMs: 3,
    }),
    request: scoreRequest({ experiments: { layout: 'b' } }),
    queueMs: 5,
    computeMs: 6,
    worker: 'w1',
    simulated: true,
    nowMs: 112,
    ...fields,
  };
}

const scores = {
  heads: [
    { name: 'ctr', values: Float32Array.of(0.5, 0.25) },
    { name: 'cvr', values: Float32Array.of(1, 2) },
  ],
  scores: Float32Array.of(3, 4),
};
const shared = {
  requestId: 'r1',
  baselineCandidates: 2,
  policy: dispatch().policy,
  target: { accelerator: 'cpu', pool: 'cpu', kernel: 'dense', memory: 'host', worker: 'w1', simulated: true },
  fallback: 'why',
  experiments: { layout: 'b' },
  timings: {
    inTopicMs: 7,
    extractMs: 1,
    routeMs: 2,
    queueMs: 5,
    computeMs: 6,
    totalMs: 22,
    budgetMs: 100,
  },
  trace: '{}',
};
const told = { fallback: 'why', trace: '{}' };

describe('a scored result', () => {
  it('has every head and the scores as FP32, and says what made them', () => {
    const model = handDrivenModel({ version: '7' });
    const result = scoredResult(computed({}, { ...told, scoreLimit: 5 }), scores, model, true);
    expect(result).toMatchObject({
      ...shared,
      outcome: 'SCORED',
      late: true,
      model: 'ranker',
      modelVersion: '7',
      candidatesScored: 2,
      candidatesGranted: 3,
      outputs: [
        { name: 'ctr', datatype: 'FP32', shape: [2] },
        { name: 'cvr', datatype: 'FP32', shape: [2] },
      ],
      candidateIds: null,
    });
    expect([0, 4].map((at) => result.scores.readFloatLE(at))).toEqual([3, 4]);
    expect([0, 4].map((at) => result.outputs[0]?.contents.readFloatLE(at))).toEqual([0.5, 0.25]);
  });

  it.each([
    ['numbers', numbers('ids', 'INT64', [3], [101, 102, 103]), numbers('ids', 'INT64', [2], [101, 102])],
    ['texts', texts('ids', [3], ['a', 'bcd', 'ef']), texts('ids', [2], ['a', 'bcd'])],
  ])('repeats the ids of those that were scored: %s', (_name, candidateIds, expected) => {
    const request = scoreRequest({ candidateIds });
    const result = scoredResult(computed({ request }), scores, handDrivenModel(), false);
    expect(result.candidateIds).toEqual(expected);
  });

  it.each([
    ['numbers', numbers('ids', 'INT64', [0], [])],
    ['texts', texts('ids', [0], [])],
  ])('of no candidates has none: %s', (_name, candidateIds) => {
    const none = { heads: [{ name: 'ctr', values: new Float32Array(0) }], scores: new Float32Array(0) };
    const request = scoreRequest({ candidateIds });
    const result = scoredResult(computed({ request }), none, handDrivenModel(), false);
    expect(result).toMatchObject({ candidatesScored: 0, candidateIds: { shape: [0] } });
    expect([result.scores.length, result.candidateIds?.contents.length]).toEqual([0, 0]);
  });
});

describe('a result without scores', () => {
  it('says why, and the same of target, policy and time', () => {
    const ending = { outcome: 'EXPIRED', code: 'BUDGET_EXHAUSTED', message: 'late' } as const;
    expect(unscoredResult(computed({}, told), ending)).toMatchObject({
      ...shared,
      outcome: 'EXPIRED',
      reason: { code: 'BUDGET_EXHAUSTED', message: 'late' },
      model: 'ranker',
      candidatesScored: 0,
    });
  });

  it.each([
    [new MillraceError('INVALID_TENSOR', 'odd shape'), 'INVALID_TENSOR', false],
    [new Error('segmentation fault'), 'MODEL_FAILED', true],
  ])('of a failure says whether trying again can help: %s', (error, code, retryable) => {
    expect(failedResult(computed(), error)).toMatchObject({
      outcome: 'REJECTED',
      reason: { code, message: error.message, retryable },
    });
  });
});
