import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  type ModelFile,
  manifestText,
  type PublishedModel,
} from '../../../../src/core/model/published-model.ts';

export const sha256 = (text: string | Uint8Array): string =>
  `sha256:${createHash('sha256').update(text).digest('hex')}`;

/** A model that was published as `model publish` does it, with files of these texts. */
export function publishedModel(
  version = '3',
  texts: Readonly<Record<string, string>> = { 'config.yaml': 'format: 1', 'model.onnx': `graph ${version}` },
  fields: Partial<PublishedModel> = {},
): PublishedModel {
  const files: ModelFile[] = Object.entries(texts)
    .map(([name, text]) => ({ name, bytes: Buffer.byteLength(text), digest: sha256(text) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    family: 'ranker',
    version,
    source: `/models/ranker/${version}`,
    digest: sha256(manifestText(files)),
    files,
    ...fields,
  };
}

const fileName = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,12}$/);

/** Any that PUBLISH_MODEL takes. */
export const anyModel: fc.Arbitrary<PublishedModel> = fc
  .record({
    family: fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/),
    version: fc.stringMatching(/^[1-9][0-9]{0,4}$/),
    source: fc.constantFrom('/models/a', 'file:///models/a', 'https://models.example/a/?v=1'),
    texts: fc.dictionary(fileName, fc.string({ minLength: 1 }), { maxKeys: 4, noNullPrototype: true }),
  })
  .map(({ family, version, source, texts }) =>
    publishedModel(version, { ...texts, 'config.yaml': 'format: 1' }, { family, source }),
  );
