import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogueOf, readCatalogue, writeCatalogue } from '../../../../src/core/model/catalogue.ts';
import { anyModel, publishedModel } from './model.fixture.ts';

const models = ['1', '2', '3', '4', '5', '6', '7'].map((version, index) => ({
  model: publishedModel(version),
  publication: index + 1,
}));
const shown = (named: string[]): string[] =>
  catalogueOf(models, new Set(named)).versions.map(
    ({ model, isNamed }) => `${model.version}${isNamed ? '!' : ''}`,
  );

describe('the catalogue of published versions', () => {
  it('has the latest of a family, and whatever a policy names', () => {
    expect(shown([])).toEqual(['4', '5', '6', '7']);
    expect(shown(['ranker@1', 'ranker@6', 'other@2'])).toEqual(['1!', '3', '4', '5', '6!', '7']);
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.array(anyModel), (any) => {
        const catalogue = catalogueOf(
          any.map((model, publication) => ({ model, publication })),
          new Set(['ranker@1']),
        );
        expect(readCatalogue(writeCatalogue(catalogue))).toEqual(catalogue);
      }),
    );
  });

  it('is not read from what is none', () => {
    for (const text of ['', 'null', '{}', '{"versions":[{"model":{},"isNamed":true}]}'])
      expect(readCatalogue(text)).toBeUndefined();
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        readCatalogue(text);
      }),
    );
  });
});
