import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { packageRoot } from './package-root.ts';

/**
 * A file that the user named; `examples/…` is the package's own where there is none here, so that what the documentation shows works
 * in any folder.
 * @param what names it in messages
 * @param bytesMax no more is read of it: what somebody made by hand, or a device, has no end
 * @throws MillraceError INVALID_CONFIG where it cannot be read, or is larger
 */
export function readUserFile(file: string, what = 'the file', bytesMax?: number): Buffer {
  try {
    const path = userFilePath(file);
    return bytesMax === undefined ? readFileSync(path) : readWithin(path, bytesMax);
  } catch (error) {
    throw fileError(`${what} cannot be read`, file, error, 'read');
  }
}

const READ_BYTES = 65_536;

/** By what comes, and not by what the file says of its size: a pipe and a device say none. */
function readWithin(path: string, bytesMax: number): Buffer {
  const handle = openSync(path, 'r');
  try {
    const parts: Buffer[] = [];
    for (let bytes = 0; bytes <= bytesMax; ) {
      const part = Buffer.allocUnsafe(READ_BYTES);
      const read = readSync(handle, part);
      if (read === 0) return Buffer.concat(parts);
      parts.push(part.subarray(0, read));
      bytes += read;
    }
    throw Object.assign(new Error('too large'), { code: 'EFBIG' });
  } finally {
    closeSync(handle);
  }
}

/**
 * Writes a file that the user named, whole or not at all: where it fails, one that was there is as it was, and one that was not is not there.
 * @param options.isNew a file that is there is never overwritten
 * @throws MillraceError INVALID_CONFIG where it cannot be written
 */
export function writeUserFile(
  file: string,
  contents: string | Uint8Array,
  options: { mode?: number; isNew?: boolean } = {},
): void {
  const { mode, isNew = false } = options;
  try {
    const there = isNew ? undefined : statSync(file, { throwIfNoEntry: false });
    if (there === undefined) writeAside(file, contents, mode, takeName);
    else if (there.isFile()) writeAside(realpathSync(file), contents, there.mode, renameSync);
    // A pipe or a terminal: what stood in it before is gone anyway.
    else writeFileSync(file, contents);
  } catch (error) {
    throw fileError('the file cannot be written', file, error, 'written');
  }
}

/**
 * Whether a file that the user named can be written, as far as can be seen without writing it: asked before work of minutes whose outcome goes there.
 * @throws MillraceError INVALID_CONFIG where it cannot
 */
export function checkWritable(file: string): void {
  try {
    const there = statSync(file, { throwIfNoEntry: false });
    if (there?.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' });
    // A file is replaced by one that is written beside it; a pipe or a terminal is not.
    const isReplaced = there === undefined || there.isFile();
    accessSync(isReplaced ? `${dirname(file)}${sep}` : file, constants.W_OK);
  } catch (error) {
    throw fileError('the file cannot be written', file, error, 'written');
  }
}

/**
 * Writes files into a folder, which is made where it is missing: all of them, in the place of what has their names, or none.
 * @returns their paths
 * @throws MillraceError INVALID_CONFIG where one cannot be written
 */
export function writeUserFiles(folder: string, files: ReadonlyMap<string, string | Uint8Array>): string[] {
  const moves = [...files].map(([name, contents]) => {
    return { contents, path: join(folder, name), aside: join(folder, `.millrace-${randomUUID()}`) };
  });
  try {
    mkdirSync(folder, { recursive: true });
    for (const { aside, contents } of moves) writeNew(aside, contents, undefined);
    for (const { aside, path } of moves) renameSync(aside, path);
    return moves.map(({ path }) => path);
  } catch (error) {
    for (const { aside } of moves) rmSync(aside, { force: true });
    throw fileError('the files cannot be written', folder, error, 'written');
  }
}

/** A half that stayed would be taken for the file, and for one that must not be overwritten. */
function writeNew(file: string, contents: string | Uint8Array, mode: number | undefined): void {
  let isOurs = false;
  try {
    const handle = openSync(file, 'wx', mode);
    isOurs = true;
    try {
      writeFileSync(handle, contents);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    if (isOurs) rmSync(file, { force: true });
    throw error;
  }
}

/** The name is given to what is whole: who ends the process meanwhile finds no half of it there. */
function writeAside(
  file: string,
  contents: string | Uint8Array,
  mode: number | undefined,
  give: (aside: string, file: string) => void,
): void {
  const aside = join(dirname(file), `.millrace-${randomUUID()}`);
  writeNew(aside, contents, mode);
  try {
    give(aside, file);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** File systems without a second name for a file, of which a look must do. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** A rename would take the name from whatever got it meanwhile. @throws where there is something of this name */
function takeName(aside: string, file: string): void {
  try {
    linkSync(aside, file);
    rmSync(aside);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!NO_LINKS.has(code)) throw error;
    if (lstatSync(file, { throwIfNoEntry: false }) !== undefined)
      throw Object.assign(new Error('it is there'), { code: 'EEXIST' });
    renameSync(aside, file);
  }
}

/** Where the file that the user named lies; `examples/…` as in `readUserFile`. */
export function userFilePath(file: string): string {
  const isPackaged = file.startsWith('examples/') && !existsSync(file);
  return isPackaged ? join(packageRoot(), file) : file;
}

type Reason = readonly [reason: string, advice: string];

const READING: Readonly<Record<string, Reason>> = {
  ENOENT: ['there is none of this name', 'Correct the path: a relative one begins in the current folder'],
  ENOTDIR: ['a part of its path is no folder', 'Correct the path'],
  EACCES: ['you may not read it', 'Ask its owner for the right to, or name another'],
  EISDIR: ['it is a folder', 'Name a file in it'],
  EFBIG: ['it is larger than one can be', 'Name another'],
};

const WRITING: Readonly<Record<string, Reason>> = {
  ENOENT: ['its folder does not exist', 'Make the folder, or name another'],
  ENOTDIR: ['a part of its path is no folder', 'Correct the path'],
  EACCES: ['you may not write it', 'Name a folder of your own'],
  EROFS: ['its disk is read-only', 'Name a folder on another'],
  EISDIR: ['it is a folder', 'Name a file in it'],
  EEXIST: ['it is there already, and is never overwritten', 'Name another'],
  ENOSPC: ['its disk is full', 'Make room, or name another'],
  EDQUOT: ['your share of its disk is used up', 'Make room, or name another'],
  EFBIG: ['it would be larger than a file may be here', 'Raise the bound (ulimit -f), or name another disk'],
};

/** @param what the file is, and that it cannot be read or written */
export function fileError(
  what: string,
  file: string,
  error: unknown,
  how: 'read' | 'written',
  advice?: string,
): MillraceError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [reason, usual] = (how === 'read' ? READING : WRITING)[code] ?? [code || String(error), undefined];
  const shown = advice ?? usual;
  return new MillraceError('INVALID_CONFIG', `${what}: ${reason}`, {
    value: file,
    ...(shown === undefined ? {} : { advice: shown }),
    cause: error,
  });
}
