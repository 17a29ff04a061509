import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { checkFileName } from '../../core/model/model-location.ts';
import type { ModelSource } from '../../ports/model-source.ts';

const CHUNK_BYTES = 1024 * 1024;

/** A folder that this machine sees: a disk, or a volume that workers share. */
export function folderModelSource(): ModelSource {
  return { read: readFile };
}

async function* readFile(
  folder: string,
  file: string,
  bytesMax: number,
  over: AbortSignal,
): AsyncGenerator<Uint8Array> {
  checkFileName(file);
  const root = await known(realpath(folder), folder);
  const path = await known(realpath(join(root, file)), join(folder, file));
  if (!path.startsWith(root.endsWith(sep) ? root : root + sep))
    throw new MillraceError('INVALID_MODEL', `${file} is a link out of its folder`, {
      advice: 'Put the file itself there',
    });
  // Without waiting: a named pipe without a writer would hold a thread for ever.
  const handle = await known(open(path, constants.O_RDONLY | constants.O_NONBLOCK), path);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new MillraceError('INVALID_MODEL', `${file} is not a file`);
    if (stat.size > bytesMax) throw tooLarge(file, stat.size, bytesMax);
    // What is appended meanwhile is not of the file that was measured.
    for (let at = 0; at < stat.size; ) {
      if (over.aborted) throw new MillraceError('MODEL_UNAVAILABLE', `reading ${file} was ended`);
      const chunk = new Uint8Array(Math.min(CHUNK_BYTES, stat.size - at));
      const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

function known<T>(asked: Promise<T>, path: string): Promise<T> {
  return asked.catch((cause: unknown) => {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new MillraceError('MODEL_UNAVAILABLE', `the file cannot be read: ${code}`, { value: path, cause });
  });
}

function tooLarge(file: string, bytes: number, bytesMax: number): MillraceError {
  return new MillraceError('INVALID_MODEL', `${file} is larger than was published`, {
    value: bytes,
    allowed: `${bytesMax} bytes`,
  });
}
