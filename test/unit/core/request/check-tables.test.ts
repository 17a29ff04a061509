import { expect, it } from 'vitest';
import { checkRequest } from '../../../../src/core/request/check.ts';
import type { FamilyContract } from '../../../../src/core/request/family.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { numbers, RANKER, request, texts } from './requests.ts';

/** The family, its items in a table. */
const WITH_TABLE: FamilyContract = {
  ...RANKER,
  inputs: RANKER.inputs.map((input) =>
    input.name === 'item' ? { ...input, required: false, byIds: true } : input,
  ),
};

const ids = numbers('ids', 'INT64', [2], [7, 8]);
const rows = numbers('item', 'FP32', [2, 2], [1, 2, 3, 4]);

it.each([
  ['ids alone', { candidateIds: ids, candidateTensors: [] }, { status: 'accepted', candidateCount: 2 }],
  ['rows alone', { candidateIds: null, candidateTensors: [rows] }, { status: 'accepted', candidateCount: 2 }],
  ['both', { candidateIds: ids, candidateTensors: [rows] }, { status: 'accepted', candidateCount: 2 }],
  [
    'neither, where another input says that there are candidates',
    { candidateIds: null, candidateTensors: [texts('tags', [2], ['a', 'b'])] },
    { status: 'rejected', code: 'INVALID_TENSOR' },
  ],
])('a family with an item table: %s', (_, change, expected) => {
  const families = new Map([[WITH_TABLE.family, WITH_TABLE]]);
  const checked = checkRequest(
    request({ baselineCandidates: 0, ...change }),
    families,
    DEFAULT_REQUEST_LIMITS,
  );
  expect(checked).toMatchObject(expected);
});

/** The family, its user in a feature source. */
const bySource = (idFrom: string): FamilyContract => ({
  ...RANKER,
  inputs: RANKER.inputs.map((input) =>
    input.name === 'user' ? { ...input, required: false, idFrom } : input,
  ),
});
const ACCEPTED = { status: 'accepted' };
const REFUSED = { status: 'rejected', code: 'INVALID_TENSOR' };
const sent = request().requestTensors;

it.each([
  ['a bucket key', 'bucketKey', { bucketKey: 'ann' }, ACCEPTED],
  ['no bucket key', 'bucketKey', { bucketKey: null, context: { bucketKey: 'ann' } }, REFUSED],
  ['a context', 'context.user.id', { context: { 'user.id': 'ann' } }, ACCEPTED],
  ['another context', 'context.user', { context: { tier: 'gold' } }, REFUSED],
  ['what every object has', 'context.constructor', {}, REFUSED],
  ['nothing, and the row itself', 'context.user', { requestTensors: sent }, ACCEPTED],
])('a family with a feature source of the user: %s', (_, idFrom, change, expected) => {
  const family = bySource(idFrom);
  const requestTensors = sent.filter(({ name }) => name !== 'user');
  const checked = checkRequest(
    request({ requestTensors, ...change }),
    new Map([[family.family, family]]),
    DEFAULT_REQUEST_LIMITS,
  );
  expect(checked).toMatchObject(expected);
  if (expected === REFUSED) expect(JSON.stringify(checked)).toContain(`or ${idFrom} in its place`);
});
