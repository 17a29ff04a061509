import { parseDocument } from 'yaml';
import type { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';

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
export function parseAs<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(file, problemsIn(parsed.error), parsed.error);
}

/** Each with its path. */
export function problemsIn({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${pathOf(path)}${message}`).join('; ');
}

function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '';
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${text.replace(/^\./, '')}: `;
}

function invalid(file: string, what: string, cause: unknown): MillraceError {
  return new MillraceError('INVALID_MODEL', `${file}: ${what}`, {
    cause,
    advice: 'models/README.md has the format.',
  });
}
