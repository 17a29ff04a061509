import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { packageRoot } from './package-root.ts';

/**
 * A file that the user named; `examples/…` is the package's own where there is none here, so that what the documentation shows works
 * in any folder.
 * @throws MillraceError INVALID_CONFIG where it cannot be read
 */
export function readUserFile(file: string): Buffer {
  const isPackaged = file.startsWith('examples/') && !existsSync(file);
  try {
    return readFileSync(isPackaged ? join(packageRoot(), file) : file);
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
