import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';

export interface PlacedVersion {
  readonly family: string;
  readonly version: string;
  readonly files: ReadonlyMap<string, Uint8Array | string>;
  /** Takes the place of one that is there already. */
  readonly replace: boolean;
}

const TAKEN: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR']);
/** Folders that begin with a dot are no families: workers that serve from the repository pass them by. */
const STAGING = '.millrace-init-';

/**
 * Puts a version into a repository, all of it or nothing: its files are written beside, checked there, and renamed into place.
 *
 * @param check of the repository in which it lies until then; what it throws leaves everything as it was
 * @returns the version's folder
 * @throws MillraceError INVALID_CONFIG where there is one already that is not to be replaced
 */
export async function placeVersion(
  root: string,
  { family, version, files, replace }: PlacedVersion,
  check: (repository: string) => Promise<void>,
): Promise<string> {
  await mkdir(root, { recursive: true });
  const staging = await mkdtemp(join(root, STAGING));
  try {
    const made = join(staging, family, version);
    await mkdir(made, { recursive: true });
    for (const [name, contents] of files) await writeFile(join(made, name), contents);
    await check(staging);
    await mkdir(join(root, family), { recursive: true });
    const place = join(root, family, version);
    if (replace) await swap(made, place, join(staging, 'before'));
    else await moveInto(made, place);
    return place;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Somebody else may have made the same version in the meantime: a folder with files in it is never renamed over. */
async function moveInto(made: string, place: string): Promise<void> {
  await rename(made, place).catch((cause: unknown) => {
    const isTaken = cause instanceof Error && 'code' in cause && TAKEN.has(String(cause.code));
    if (!isTaken) throw cause;
    throw new MillraceError('INVALID_CONFIG', 'the version is there already', {
      value: place,
      allowed: 'another version',
      cause,
    });
  });
}

/** `made` in the place of what may be at `place`, which is put back if that fails. */
async function swap(made: string, place: string, before: string): Promise<void> {
  const isThere = await rename(place, before).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
      throw error;
    },
  );
  try {
    await rename(made, place);
  } catch (error) {
    if (isThere) await rename(before, place);
    throw error;
  }
}
