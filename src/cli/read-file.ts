import { readFileSync } from 'node:fs';
import { MillraceError } from '../core/errors.ts';

/** A file that the user named. @throws MillraceError INVALID_CONFIG where it cannot be read */
export function readUserFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? REASONS[String(error.code)] : undefined;
    throw new MillraceError('INVALID_CONFIG', `the file cannot be read: ${reason ?? String(error)}`, {
      value: file,
      cause: error,
    });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is none of this name',
  EACCES: 'you may not read it',
  EISDIR: 'it is a folder',
};
