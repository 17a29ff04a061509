import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { parseCostModel, predictCostMs } from '../../../../src/core/signals/cost-model.ts';

const REPOSITORY = join(import.meta.dirname, '../../../../models/repository');

const document = (changes: object = {}): object => ({
  format: 1,
  family: 'ranker',
  version: 1,
  unit: 'ms',
  features: ['1', 'N', 'T', 'N*T', 'N*N'],
  coefficients: [10, 1, 0.5, 0.25, 0.125],
  ...changes,
});

describe('parseCostModel', () => {
  it('reads each feature as powers of N and T', () => {
    expect(parseCostModel(document()).terms).toEqual([
      { coefficient: 10, candidates: 0, rows: 0 },
      { coefficient: 1, candidates: 1, rows: 0 },
      { coefficient: 0.5, candidates: 0, rows: 1 },
      { coefficient: 0.25, candidates: 1, rows: 1 },
      { coefficient: 0.125, candidates: 2, rows: 0 },
    ]);
  });

  it.each<[string, unknown, string]>([
    ['a list', [], 'no object'],
    ['null', null, 'no object'],
    ['a text', 'x', 'no object'],
    ['another format', document({ format: 2 }), 'got 2'],
    ['another unit', document({ unit: 'us' }), 'got "us"'],
    ['no features', document({ features: [], coefficients: [] }), 'no features'],
    ['features that are no list', document({ features: 'N' }), 'no features'],
    ['a coefficient too few', document({ coefficients: [1, 2, 3, 4] }), '5 numbers'],
    ['a coefficient that is a text', document({ features: ['N'], coefficients: ['1'] }), 'no number'],
    [
      'an infinite coefficient',
      document({ features: ['N'], coefficients: [Number.POSITIVE_INFINITY] }),
      'no number',
    ],
    ['an unknown factor', document({ features: ['N*B'], coefficients: [1] }), 'got "N*B"'],
    ['1 within a product', document({ features: ['1*N'], coefficients: [1] }), 'got "1*N"'],
    ['an empty feature', document({ features: [''], coefficients: [1] }), 'got ""'],
    ['five factors', document({ features: ['N*N*N*N*N'], coefficients: [1] }), 'up to 4'],
    ['a feature that is a number', document({ features: [1], coefficients: [1] }), 'got 1'],
    ['more than 2 KB', document({ machine: 'x'.repeat(2048) }), 'at most 2048 bytes'],
  ])('refuses %s', (_, given, part) => {
    const parse = () => parseCostModel(given);
    expect(parse).toThrow(MillraceError);
    expect(parse).toThrow(part);
    expect(parse).toThrow(expect.objectContaining({ code: 'INVALID_MODEL' }));
  });

  it('reads any document or refuses it with INVALID_MODEL', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.record({ features: fc.jsonValue(), coefficients: fc.jsonValue() }).map(document),
        ),
        (given) => {
          try {
            expect(parseCostModel(given).terms.length).toBeGreaterThan(0);
          } catch (error) {
            expect(error).toMatchObject({ code: 'INVALID_MODEL' });
          }
        },
      ),
    );
  });

  it('reads every cost model of the model repository', () => {
    const files = readdirSync(REPOSITORY, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('cost.json'),
    );
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const model = parseCostModel(JSON.parse(readFileSync(join(REPOSITORY, file), 'utf8')));
      expect(predictCostMs(model, 256, 32)).toBeGreaterThan(predictCostMs(model, 1, 0));
    }
  });
});

describe('predictCostMs', () => {
  const model = parseCostModel(document());

  it.each([
    [0, 0, 10],
    [4, 0, 10 + 4 + 2],
    [0, 2, 10 + 1],
    [4, 2, 10 + 4 + 1 + 2 + 2],
  ])('of %i candidates and %i rows is %d', (candidates, rows, costMs) => {
    expect(predictCostMs(model, candidates, rows)).toBe(costMs);
  });

  it('is 0 where the fit runs below', () => {
    expect(predictCostMs({ terms: [{ coefficient: -1, candidates: 1, rows: 0 }] }, 3, 0)).toBe(0);
  });
});
