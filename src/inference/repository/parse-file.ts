import * as v from 'valibot';
import { parseDocument } from 'yaml';
import { MillraceError } from '../../core/errors.ts';
import { problemsIn } from '../../core/json-values.ts';

/** @throws MillraceError INVALID_MODEL: not YAML, or a repeated key, with its line. */
export function readYaml(file: string, text: string): unknown {
  const document = parseDocument(text, { version: '1.2', schema: 'core', uniqueKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw invalid(file, problem.message, problem);
  return document.toJS({ maxAliasCount: 0 });
}

/** @throws MillraceError INVALID_MODEL */
export function readJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(file, 'is not JSON', cause);
  }
}

/**
 * The value as the schema has it.
 * @throws MillraceError INVALID_MODEL with the file, the path in it, and what is allowed there.
 */
export function parseAs<Schema extends v.GenericSchema<unknown, unknown>>(
  file: string,
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw invalid(file, problemsIn(parsed.issues));
}

function invalid(file: string, what: string, cause?: unknown): MillraceError {
  return new MillraceError('INVALID_MODEL', `${file}: ${what}`, {
    cause,
    advice: 'models/README.md has the format.',
  });
}
