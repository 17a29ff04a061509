import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CATALOGUE_BYTES_MAX,
  catalogueOf,
  catalogueRefusal,
  fittedCatalogue,
  readCatalogue,
  writeCatalogue,
} from '../../../../src/core/model/catalogue.ts';
import { DOCUMENT_BYTES_MAX } from '../../../../src/ports/control-store.ts';
import { anyModel, publishedModel } from './model.fixture.ts';

const models = ['1', '2', '3', '4', '5', '6', '7'].map((version, index) => ({
  model: publishedModel(version),
  publication: index + 1,
}));
const shown = (inUse: string[], ever = inUse): string[] =>
  catalogueOf(models, { inUse: new Set(inUse), ever: new Set(ever) }).versions.map(
    ({ model, isNamed }) => `${model.version}${isNamed ? '!' : ''}`,
  );

describe('the catalogue of published versions', () => {
  it('has the latest of a family, whatever a policy in use names, and nothing that served and is named no more', () => {
    expect(shown([])).toEqual(['4', '5', '6', '7']);
    expect(shown(['ranker@7'], ['ranker@6', 'ranker@7'])).toEqual(['2', '3', '4', '5', '7!']);
    expect(shown(['ranker@1', 'ranker@6', 'other@2'])).toEqual(['1!', '3', '4', '5', '6!', '7']);
  });

  it('has no more than the store takes: those that are named, and the newest others', () => {
    const files = Array.from({ length: 31 }, (_, n) => [`${n}${'x'.repeat(126)}`, 'weights']);
    const texts = Object.fromEntries([['config.yaml', 'format: 1'], ...files]);
    const source = `https://models.example/${'x'.repeat(990)}`;
    const many = Array.from({ length: 300 }, (_, n) => ({
      model: publishedModel('1', texts, { family: `family-${n}`, version: `${100_000_000 + n}`, source }),
      publication: n + 1,
    }));
    const named = new Set(many.slice(0, 10).map(({ model }) => `${model.family}@${model.version}`));
    const catalogue = catalogueOf(many, { inUse: named, ever: named });
    const publications = catalogue.versions.map(({ publication }) => publication);
    expect(publications).toHaveLength(100);
    expect([publications[9], publications[10], publications.at(-1)]).toEqual([10, 211, 300]);
    expect(Buffer.byteLength(writeCatalogue(catalogue))).toBeLessThan(1_048_576);
    expect(readCatalogue(writeCatalogue(catalogue))).toEqual(catalogue);
  });

  it('may be as long as the store takes a document', () => {
    expect(CATALOGUE_BYTES_MAX).toBeLessThanOrEqual(DOCUMENT_BYTES_MAX);
  });

  it('that would be longer is told of by its size, and fitted: what policies name stays, then the newest', () => {
    // of the characters that are longest in UTF-8 and in JSON
    const source = `/${'\u0001'.repeat(1_023)}`;
    const many = Array.from({ length: 300 }, (_, n) => ({
      model: publishedModel(`${n + 1}`, undefined, {
        family: `family-${n}`,
        source,
        files: publishedModel().files.flatMap((file) =>
          Array.from({ length: 16 }, (_, k) => ({ ...file, name: `${k}${'x'.repeat(120)}` })),
        ),
      }),
      publication: n + 1,
    }));
    const named = new Set(many.slice(0, 10).map(({ model }) => `${model.family}@${model.version}`));
    const whole = catalogueOf(many, { inUse: named, ever: named });
    const last = publishedModel('300', undefined, { family: 'family-299' });
    expect(catalogueRefusal(whole, last)).toMatch(
      /^with family-299@300 the catalogue of 100 versions .* would have 1\d{6} bytes; allowed: 1048576\. Publish it with/,
    );
    const { catalogue, leftOut } = fittedCatalogue(whole);
    const bytes = Buffer.byteLength(writeCatalogue(catalogue));
    expect(bytes).toBeLessThanOrEqual(CATALOGUE_BYTES_MAX);
    expect(bytes).toBeGreaterThan(CATALOGUE_BYTES_MAX - 20_000);
    expect(catalogueRefusal(catalogue, last)).toBeUndefined();
    const publications = catalogue.versions.map(({ publication }) => publication);
    expect(publications.slice(0, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(publications.at(-1)).toBe(300);
    expect(leftOut.map(({ publication }) => publication)).toEqual(
      Array.from({ length: leftOut.length }, (_, n) => 211 + n),
    );
    expect(fittedCatalogue(catalogue)).toEqual({ catalogue, leftOut: [] });
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.array(anyModel), (any) => {
        const catalogue = catalogueOf(
          any.map((model, publication) => ({ model, publication })),
          { inUse: new Set(['ranker@1']), ever: new Set() },
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
