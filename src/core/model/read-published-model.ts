import { count, list, MISFIT, onlyFields, parseJson, text } from '../control/json-shape.ts';
import { MillraceError } from '../errors.ts';
import { readModelLocation } from './model-location.ts';
import {
  CONFIG_FILE,
  FAMILY_NAME,
  FILE_NAME,
  MODEL_LIMITS,
  type ModelFile,
  manifestText,
  type PublishedModel,
  SHA256,
  totalBytes,
  VERSION_NUMBER,
} from './published-model.ts';

/** A command's body is read only up to here: 32 files take a fifth of it. */
const BODY_LENGTH_MAX = 64 * 1024;

const BODY =
  '{"family": "ranker", "version": "3", "source": "https://…/ranker/3/", "digest": "sha256:…", "files": [{"name": "config.yaml", "bytes": 1714, "digest": "sha256:…"}, …]}';

const bodyShape = onlyFields({
  family: text,
  version: text,
  source: text,
  digest: text,
  files: list(onlyFields({ name: text, bytes: count, digest: text })),
});

/**
 * Body of PUBLISH_MODEL.
 *
 * @param digest `sha256:<hex>` of a text's UTF-8
 * @throws MillraceError INVALID_COMMAND with what is wrong first
 */
export function readPublishedModel(body: string, digest: (text: string) => string): PublishedModel {
  const read = body.length > BODY_LENGTH_MAX ? MISFIT : parseJson(body, bodyShape);
  if (read === MISFIT)
    throw new MillraceError('INVALID_COMMAND', 'PUBLISH_MODEL does not take this body', {
      value: body.slice(0, 40),
      allowed: BODY,
    });
  return checkPublishedModel(read, digest);
}

/**
 * The same checks on one that was read from elsewhere: nobody who keeps it is trusted for its paths.
 *
 * @throws MillraceError INVALID_COMMAND
 */
export function checkPublishedModel(model: PublishedModel, digest: (text: string) => string): PublishedModel {
  const { family, version, source } = model;
  const isFamily = FAMILY_NAME.test(family) && family.length <= MODEL_LIMITS.familyLength;
  if (!isFamily)
    throw wrong('family', family, `small letters, digits and -, at most ${MODEL_LIMITS.familyLength}`);
  if (!VERSION_NUMBER.test(version)) throw wrong('version', version, 'a whole number from 1, as text');
  readModelLocation(source);
  const files = checkFiles(model.files);
  const expected = digest(manifestText(files));
  if (model.digest !== expected)
    throw new MillraceError('INVALID_COMMAND', 'the digest is not that of the files that are listed', {
      value: model.digest,
      allowed: expected,
      advice: 'Let millrace model publish make the command',
    });
  return { family, version, source, digest: expected, files };
}

/** The files by name. */
function checkFiles(files: readonly ModelFile[]): readonly ModelFile[] {
  const names = new Set(files.map(({ name }) => name));
  if (files.length === 0 || files.length > MODEL_LIMITS.files)
    throw wrong('files', files.length, `1 … ${MODEL_LIMITS.files} files`);
  if (names.size < files.length) throw wrong('files', [...names].join(', '), 'each file once');
  if (!names.has(CONFIG_FILE)) throw wrong('files', [...names].join(', '), `${CONFIG_FILE} among them`);
  for (const { name, bytes, digest } of files) {
    if (!FILE_NAME.test(name) || name.length > MODEL_LIMITS.fileNameLength)
      throw wrong('files.name', name, 'the name of a file in one folder: letters, digits, ".", "_", "-"');
    if (bytes === 0) throw wrong('files.bytes', `0 of ${name}`, 'files that are not empty');
    if (!SHA256.test(digest)) throw wrong('files.digest', digest, 'sha256: and 64 hexadecimal digits');
  }
  const bytes = totalBytes(files);
  if (bytes > MODEL_LIMITS.bytes) throw wrong('files.bytes', bytes, `at most ${MODEL_LIMITS.bytes} together`);
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function wrong(field: string, value: unknown, allowed: string): MillraceError {
  return new MillraceError('INVALID_COMMAND', `a published model: ${field} is not what it must be`, {
    value,
    allowed,
  });
}
