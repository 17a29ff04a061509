import { count, fields, list, type Shape, text } from '../control/json-shape.ts';
import type { ModelFile, PublishedModel } from './published-model.ts';

const fileShape: Shape<ModelFile> = fields({ name: text, bytes: count, digest: text });

/** As the log and the catalogue keep one that was checked. */
export const modelShape: Shape<PublishedModel> = fields({
  family: text,
  version: text,
  digest: text,
  source: text,
  files: list(fileShape),
});
