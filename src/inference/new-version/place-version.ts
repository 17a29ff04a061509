import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface PlacedVersion {
  readonly family: string;
  readonly version: string;
  readonly files: ReadonlyMap<string, Uint8Array | string>;
}

/** Folders that begin with a dot are no families: workers that serve from the repository pass them by. */
const STAGING = '.millrace-init-';

/**
 * Puts a version into a repository, all of it or nothing: its files are written beside, checked there, and renamed into place. One that is there
 * already is replaced.
 *
 * @param check of the repository in which it lies until then; what it throws leaves everything as it was
 * @returns the version's folder
 */
export async function placeVersion(
  root: string,
  { family, version, files }: PlacedVersion,
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
    await swap(made, join(root, family, version), join(staging, 'before'));
    return join(root, family, version);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
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
