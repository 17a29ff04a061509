import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { checkRequest } from '../../../src/core/request/check.ts';
import type { FamilyContract } from '../../../src/core/request/family.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../src/core/request/limits.ts';
import { ITEM_FEATURES, readCatalogue, USER_FEATURES } from '../../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../../src/traffic/request-maker.ts';

const catalogue = readCatalogue('models/catalogue');
const RANKER: FamilyContract = {
  family: 'ranker',
  slaMs: 100,
  versions: [{ version: '1', variant: 'baseline' }],
  candidatesMax: 10_000,
  sequenceLengthMax: 1_000,
  tensorBytesMax: 10_000_000,
  inputs: [
    { name: 'user', side: 'request', datatype: 'FP32', shape: [USER_FEATURES], required: true },
    { name: 'history', side: 'request', datatype: 'FP32', shape: [-1, ITEM_FEATURES], required: false },
    { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, ITEM_FEATURES], required: true },
  ],
};

const maker = (seed = 1, options: Parameters<typeof createRequestMaker>[2] = {}) =>
  createRequestMaker(catalogue, seededRandom(seed).stream('requests'), options);

function idsOf(request: { candidateIds: { contents: Buffer } | null }): number[] {
  const contents = request.candidateIds?.contents ?? Buffer.alloc(0);
  return Array.from({ length: contents.length / 8 }, (_, place) =>
    Number(contents.readBigInt64LE(8 * place)),
  );
}

describe('the catalogue', () => {
  it('has features for each item and user, histories of whole rows, and popularity that sums to 1', () => {
    expect(catalogue.itemFeatures).toHaveLength(catalogue.itemIds.length * ITEM_FEATURES);
    expect(catalogue.titles).toHaveLength(catalogue.itemIds.length);
    expect(catalogue.popularity.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 3);
    for (const { features, history } of catalogue.users) {
      expect(features).toHaveLength(USER_FEATURES);
      expect(history.length % ITEM_FEATURES).toBe(0);
    }
  });

  it('that is not there is told with its folder', () => {
    expect(() => readCatalogue('no/such/folder')).toThrow(
      /the catalogue cannot be read: .*"no\/such\/folder"/,
    );
  });
});

describe('a made request', () => {
  it.each([
    [1, 0],
    [8, 3],
    [256, 1_000],
  ])('of %d candidates and at most %d rows passes every check', (candidates, historyRows) => {
    for (let n = 0; n < 20; n += 1) {
      const request = maker(n).make(`r${n}`, { candidates, historyRows });
      const check = checkRequest(request, new Map([['ranker', RANKER]]), DEFAULT_REQUEST_LIMITS);
      expect(check).toMatchObject({ status: 'accepted', candidateCount: candidates, requestId: `r${n}` });
      expect(request.requestTensors[1]?.shape[0]).toBeLessThanOrEqual(historyRows);
      expect(request.baselineCandidates).toBe(candidates);
      expect(new Set(idsOf(request)).size).toBe(candidates);
    }
  });

  it('carries each item’s own features with its id', () => {
    const request = maker().make('r', { candidates: 5, historyRows: 0 });
    const contents = request.candidateTensors[0]?.contents ?? Buffer.alloc(0);
    idsOf(request).forEach((id, row) => {
      const item = catalogue.itemIds.indexOf(id);
      for (let feature = 0; feature < ITEM_FEATURES; feature += 1) {
        expect(contents.readFloatLE(4 * (row * ITEM_FEATURES + feature))).toBe(
          catalogue.itemFeatures[item * ITEM_FEATURES + feature],
        );
      }
    });
  });

  it('leaves the catalogue as it was', () => {
    const before = catalogue.users.map(({ features }) => features.slice());
    for (let n = 0; n < 50; n += 1) maker(n).make('r', { candidates: 2, historyRows: 2 });
    expect(catalogue.users.map(({ features }) => features)).toEqual(before);
  });

  it('is the same for the same seed', () => {
    const shape = { candidates: 4, historyRows: 4 };
    expect(maker(3).make('r', shape)).toEqual(maker(3).make('r', shape));
    expect(maker(3).make('r', shape)).not.toEqual(maker(4).make('r', shape));
  });

  it('asks for the model and the deadline that it is told', () => {
    const shape = { candidates: 1, historyRows: 0 };
    expect(maker().make('r', shape)).toMatchObject({ model: 'ranker', deadlineMs: null });
    const told = maker(1, { deadlineMs: 250, model: 'ranker@2' }).make('r', shape);
    expect(told).toMatchObject({ model: 'ranker@2', deadlineMs: 250 });
  });

  it('cannot have more candidates than there are items', () => {
    const request = maker().make('r', { candidates: catalogue.itemIds.length + 10, historyRows: 0 });
    expect(idsOf(request)).toHaveLength(catalogue.itemIds.length);
  });
});
