import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AcceptedRequest, checkRequest } from '../../../../src/core/request/check.ts';
import type { FamilyContract } from '../../../../src/core/request/family.ts';
import type { RequestFields } from '../../../../src/core/request/fields.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { parseCostModel } from '../../../../src/core/signals/cost-model.ts';
import {
  createSignalExtractor,
  SIGNALS,
  type SignalName,
  type Signals,
} from '../../../../src/core/signals/extract.ts';
import { HISTORY, ITEM, numbers, RANKER, request, texts, USER } from '../request/requests.ts';

const COST_MODEL = parseCostModel({
  format: 1,
  unit: 'ms',
  features: ['1', 'N', 'N*T'],
  coefficients: [0.5, 0.25, 0.125],
});
const COST_MODELS = new Map([['ranker', COST_MODEL]]);

const WIDE: FamilyContract = {
  ...RANKER,
  candidatesMax: 4096,
  sequenceLengthMax: 4096,
  tensorBytesMax: 1 << 22,
};

function accept(sent: RequestFields, family: FamilyContract = WIDE): AcceptedRequest {
  const checked = checkRequest(sent, new Map([[family.family, family]]), DEFAULT_REQUEST_LIMITS);
  if (checked.status === 'rejected') throw new Error(checked.message);
  return checked;
}

const extract = (changes: Partial<RequestFields>, family?: FamilyContract): Signals =>
  createSignalExtractor(COST_MODELS).extract(accept(request(changes), family));

const item = (n: number, values: (index: number) => number) =>
  numbers(
    'item',
    'FP32',
    [n, 2],
    Array.from({ length: 2 * n }, (_, index) => values(index)),
  );

const history = (rows: number[][]) => numbers('history', 'FP32', [rows.length, 8], rows.flat());

const without = (...names: string[]): FamilyContract => ({
  ...WIDE,
  inputs: WIDE.inputs.filter(({ name }) => !names.includes(name)),
});

describe('the signals', () => {
  it('of a request worked out by hand', () => {
    const signals = extract({});
    expect(signals).toMatchObject({
      // 1 zero of 4 in user, 14 of 16 in history
      sparsityRatio: 15 / 20,
      // 3 + 2 on the request side, 4 of 6 in item
      nonZeroShare: 9 / 26,
      // user is (1, 0, −2, 2)
      embeddingNorm: 3,
      // means: user 1/4, history 7/16, item 12/6
      biasMax: 2,
      // user, history, history_length, item, request_index; no byte of tags is known
      activationBytes: 16 + 64 + 8 + 24 + 24,
      sequenceLength: 2,
      // energies 9, 0, 0, 16 of 25
      attentionHeadVariance: expect.closeTo(((36 / 25 - 1) ** 2 + 1 + 1 + (64 / 25 - 1) ** 2) / 4, 12),
      candidateCount: 3,
      // 0.5 + 0.25 · 3 + 0.125 · 3 · 2
      predictedCostMs: 2,
    });
  });

  it.each<[SignalName, string, Partial<RequestFields>, number]>([
    ['sparsityRatio', 'no zero', { requestTensors: [numbers('user', 'FP32', [4], [1, 2, 3, 4])] }, 0],
    [
      'sparsityRatio',
      'a long sequence without zeros',
      {
        requestTensors: [
          numbers('user', 'FP32', [4], [1, 2, 3, 4]),
          history(Array.from({ length: 2000 }, () => Array<number>(8).fill(5))),
        ],
      },
      0,
    ],
    [
      'sparsityRatio',
      'zeros alone, −0 among them',
      { requestTensors: [numbers('user', 'FP32', [4], [0, -0, 0, 0])] },
      1,
    ],
    [
      'nonZeroShare',
      'zeros alone',
      { requestTensors: [numbers('user', 'FP32', [4], [0, 0, 0, 0])], candidateTensors: [item(3, () => 0)] },
      0,
    ],
    [
      'nonZeroShare',
      'a candidate side that counts with its full size',
      {
        requestTensors: [numbers('user', 'FP32', [4], [0, 0, 0, 0])],
        candidateIds: null,
        candidateTensors: [item(4000, () => 1)],
      },
      8000 / 8004,
    ],
    ['embeddingNorm', 'zeros alone', { requestTensors: [numbers('user', 'FP32', [4], [0, 0, 0, 0])] }, 0],
    [
      'embeddingNorm',
      'a long sequence, which does not count',
      { requestTensors: [USER, history(Array.from({ length: 100 }, () => Array<number>(8).fill(5)))] },
      3,
    ],
    ['biasMax', 'a negative offset', { requestTensors: [numbers('user', 'FP32', [4], [-9, -9, -9, -9])] }, 9],
    [
      'biasMax',
      'candidates around 0',
      { candidateTensors: [item(3, (i) => (i % 2 === 0 ? 7 : -7))] },
      7 / 16,
    ],
    [
      'activationBytes',
      'every input sent',
      {
        requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [], [2])],
        candidateTensors: [ITEM, texts('tags', [3], ['a', 'b', ''])],
      },
      16 + 64 + 8 + 24 + 14 + 24,
    ],
    ['sequenceLength', 'the sequence left out', { requestTensors: [USER] }, 0],
    [
      'sequenceLength',
      'a length less than its rows',
      { requestTensors: [USER, HISTORY, numbers('history_length', 'INT64', [], [1])] },
      1,
    ],
    [
      'attentionHeadVariance',
      'energy spread evenly',
      { requestTensors: [USER, history([[1, 1, 1, 1, 1, 1, 1, 1]])] },
      0,
    ],
    [
      'attentionHeadVariance',
      'one head alone',
      {
        requestTensors: [
          USER,
          history([
            [0, 0, 2, 5, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, 0],
          ]),
        ],
      },
      3,
    ],
    ['attentionHeadVariance', 'an empty sequence', { requestTensors: [USER, history([])] }, Number.NaN],
    [
      'attentionHeadVariance',
      'a sequence of zeros',
      { requestTensors: [USER, history([Array<number>(8).fill(0)])] },
      Number.NaN,
    ],
    [
      'candidateCount',
      'no candidates',
      { candidateIds: null, candidateTensors: [], baselineCandidates: 0 },
      0,
    ],
    [
      'predictedCostMs',
      'no candidates',
      { candidateIds: null, candidateTensors: [], baselineCandidates: 0 },
      0.5,
    ],
    ['predictedCostMs', 'a version without a model of its own', { model: 'ranker@2' }, 2],
  ])('%s of %s', (name, _, changes, value) => {
    expect(extract(changes)[name]).toBe(value);
  });

  it('are NaN where the family has nothing to compute them from', () => {
    const noRequestSide = without('user', 'history', 'history_length');
    expect(extract({ requestTensors: [] }, noRequestSide)).toMatchObject({
      sparsityRatio: Number.NaN,
      embeddingNorm: Number.NaN,
      sequenceLength: Number.NaN,
      attentionHeadVariance: Number.NaN,
      nonZeroShare: 4 / 6,
      biasMax: 2,
    });
    const noFloats = without('user', 'history', 'history_length', 'item');
    expect(extract({ requestTensors: [], candidateTensors: [] }, noFloats)).toMatchObject({
      nonZeroShare: Number.NaN,
      biasMax: Number.NaN,
      activationBytes: 24,
    });
    expect(createSignalExtractor(new Map()).extract(accept(request()))).toMatchObject({
      predictedCostMs: Number.NaN,
    });
  });

  it.each([
    ['the request side first', RANKER.inputs],
    ['the candidate side first', RANKER.inputs.toReversed()],
  ])('of a request without candidates are those of its request side, with %s', (_order, inputs) => {
    const sent = {
      requestTensors: [numbers('user', 'FP32', [4], [1, 0, -2, 2])],
      candidateTensors: [numbers('item', 'FP32', [0, 2], [])],
      candidateIds: null,
      baselineCandidates: 0,
    };
    expect(extract(sent, { ...RANKER, inputs })).toMatchObject({
      candidateCount: 0,
      embeddingNorm: 3,
      sparsityRatio: 1 / 4,
    });
  });

  it('count item tables by the rows that the declared shape gives', () => {
    const inputs = WIDE.inputs.map((input) => ({ ...input, required: input.side === 'request' }));
    const signals = extract({ candidateTensors: [], requestTensors: [USER, HISTORY] }, { ...WIDE, inputs });
    expect(signals.activationBytes).toBe(16 + 64 + 8 + 3 * 2 * 4 + 24);
  });

  it('predict the same cost for candidates that come by their ids as for their rows', () => {
    const inputs = WIDE.inputs.map((input) =>
      input.side === 'candidate' ? { ...input, required: false, byIds: true } : input,
    );
    const family = { ...WIDE, inputs };
    const [byIds, inline] = [extract({ candidateTensors: [] }, family), extract({}, family)];
    expect(byIds.candidateCount).toBe(inline.candidateCount);
    expect(byIds.predictedCostMs).toBe(inline.predictedCostMs);
    expect(byIds.predictedCostMs).toBeGreaterThan(0);
    expect(byIds.sparsityRatio).toBe(inline.sparsityRatio);
  });

  it('read the cost model of the version that was asked for', () => {
    const models = new Map([['ranker@2', COST_MODEL]]);
    const { extract: read } = createSignalExtractor(models);
    expect(read(accept(request({ model: 'ranker@2' }))).predictedCostMs).toBe(2);
    expect(read(accept(request())).predictedCostMs).toBeNaN();
    models.set('ranker', COST_MODEL);
    expect(read(accept(request())).predictedCostMs).toBe(2);
  });

  it('do not depend on the requests that were read before', () => {
    const used = createSignalExtractor(COST_MODELS);
    const large = history(Array.from({ length: 500 }, () => Array<number>(8).fill(9)));
    used.extract(
      accept(request({ requestTensors: [USER, large, numbers('history_length', 'INT64', [], [500])] })),
    );
    used.extract(accept(request({ candidateIds: null, candidateTensors: [item(4000, () => 3)] })));
    expect(used.extract(accept(request()))).toEqual(extract({}));
  });

  it('come in the order of SIGNALS where they go to an array', () => {
    const extractor = createSignalExtractor(COST_MODELS);
    const out = new Float64Array(SIGNALS.length);
    extractor.extractInto(accept(request()), out);
    const named = extractor.extract(accept(request()));
    expect([...out]).toEqual(SIGNALS.map(({ name }) => named[name]));
  });
});

describe('the sample of the candidate side', () => {
  const sampled = (requestId: string, n: number, isZero: (index: number) => boolean): number => {
    const candidateTensors = [item(n, (index) => (isZero(index) ? 0 : 1))];
    const sent = request({ requestId, candidateIds: null, candidateTensors });
    return createSignalExtractor(COST_MODELS).extract(accept(sent)).nonZeroShare;
  };

  it('is decided by the requestId', () => {
    // 6 000 values are read 3 apart: what is found depends on where the reading starts.
    const everyThird = (index: number): boolean => index % 3 === 0;
    const shares = (): number[] => Array.from({ length: 20 }, (_, i) => sampled(`id-${i}`, 3000, everyThird));
    const first = shares();
    expect(shares()).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(1);
  });

  it('estimates a share within a few percent', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 20 }),
        fc.integer({ min: 2000, max: 4096 }),
        (id, n) => {
          expect(Math.abs(sampled(id, n, (index) => index % 7 === 0) - 6 / 7)).toBeLessThan(0.05);
        },
      ),
      { numRuns: 30 },
    );
  });
});
