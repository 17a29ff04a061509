import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { MillraceError } from '../../core/errors.ts';

const CHUNK_BYTES = 1024 * 1024;

export interface FileContents {
  bytes: Uint8Array<ArrayBuffer>;
  /** `sha256:<hex>` of the bytes. */
  digest: string;
}

/**
 * Reads a regular file that lies, links followed, inside `root` (itself a real path). Long files are read and hashed in
 * chunks, so that the event loop stays free.
 * @param label names the file in messages
 * @throws MillraceError INVALID_MODEL: missing, outside the root, not a file, larger than `bytesMax`.
 */
export async function readInside(
  root: string,
  path: string,
  label: string,
  bytesMax: number,
): Promise<FileContents> {
  const file = await openToRead(await pathInside(root, path, label));
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new MillraceError('INVALID_MODEL', `${label} is not a file`);
    if (stat.size > bytesMax) {
      throw new MillraceError('INVALID_MODEL', `${label} is too large`, {
        value: stat.size,
        allowed: `at most ${bytesMax} bytes`,
      });
    }
    return await readHashed(file, stat.size, label);
  } finally {
    await file.close();
  }
}

/** Opens without waiting: a named pipe without a writer would hold a thread for ever; that it is no file is seen afterwards. */
export function openToRead(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** The same without holding the file in memory. @throws MillraceError INVALID_MODEL */
export async function digestInside(
  root: string,
  path: string,
  label: string,
): Promise<{ bytes: number; digest: string }> {
  const file = await openToRead(await pathInside(root, path, label));
  try {
    if (!(await file.stat()).isFile()) throw new MillraceError('INVALID_MODEL', `${label} is not a file`);
    const hash = createHash('sha256');
    const chunk = new Uint8Array(CHUNK_BYTES);
    let bytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, bytes);
      if (bytesRead === 0) return { bytes, digest: `sha256:${hash.digest('hex')}` };
      hash.update(chunk.subarray(0, bytesRead));
      bytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** The real path of a file that lies, links followed, inside `root`. @throws MillraceError INVALID_MODEL */
export async function pathInside(root: string, path: string, label: string): Promise<string> {
  const real = await realpath(path).catch((cause: unknown) => {
    throw new MillraceError('INVALID_MODEL', `${label} cannot be read`, { cause });
  });
  if (real.startsWith(root + sep)) return real;
  throw new MillraceError('INVALID_MODEL', `${label} is a link out of the model repository`, {
    advice: 'Put the file itself into the repository.',
  });
}

async function readHashed(
  file: Awaited<ReturnType<typeof open>>,
  size: number,
  label: string,
): Promise<FileContents> {
  const bytes = new Uint8Array(size);
  const hash = createHash('sha256');
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(bytes, at, Math.min(CHUNK_BYTES, size - at), at);
    if (bytesRead === 0)
      throw new MillraceError('INVALID_MODEL', `${label} became shorter while it was read`);
    hash.update(bytes.subarray(at, at + bytesRead));
    at += bytesRead;
  }
  return { bytes, digest: `sha256:${hash.digest('hex')}` };
}
