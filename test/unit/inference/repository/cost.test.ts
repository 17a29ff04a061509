import * as v from 'valibot';
import { expect, test } from 'vitest';
import { parseCostModel } from '../../../../src/core/signals/cost-model.ts';
import { batchMs, costSchema, typicalRows } from '../../../../src/inference/repository/cost.ts';
import { toyCost } from '../toy-model.ts';

const cost = v.parse(costSchema, toyCost());

test('the typical number of rows is the median of those measured', () => {
  expect(typicalRows(cost)).toBe(4);
});

test('a cost model that says another number of rows is believed', () => {
  expect(typicalRows(v.parse(costSchema, { ...toyCost(), typicalRows: 0 }))).toBe(0);
});

test.each([
  [1, 0, 0.104],
  [1, 100, 0.104 + 100 * 0.0104],
  [4, 100, 4 * 0.104 + 100 * 0.0104],
  [0, 0, 0],
])('a batch of %i requests with %i candidates takes %f ms', (requests, candidates, expected) => {
  expect(batchMs(parseCostModel(cost), typicalRows(cost), requests, candidates)).toBeCloseTo(expected, 10);
});
