import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local-stack/artifacts.ts';
import { withFileLock } from '../../src/local-stack/file-lock.ts';

const run = promisify(execFile);

/** Chromium's files bring SwiftShader, a Vulkan driver that computes on the CPU, and a loader for it. */
const PACKAGE = 'chromium-common';
const LIBRARIES = 'usr/lib/chromium';
const DRIVER = 'vk_swiftshader_icd.json';

/**
 * Where a process finds a Vulkan device in software: variables that must be set when it starts, for the system's own loader of libraries reads them. The
 * Debian package is fetched once per user, and not installed.
 * @throws Error with the reason where it cannot be had here
 */
export async function softwareDevice(): Promise<Record<string, string>> {
  const folder = join(cacheFolder(process.env), 'swiftshader');
  const libraries = join(folder, LIBRARIES);
  await mkdir(cacheFolder(process.env), { recursive: true });
  await withFileLock(`${folder}.lock`, async () => {
    if (!existsSync(join(libraries, DRIVER))) await fetchInto(folder);
  });
  const driver = join(libraries, DRIVER);
  return { LD_LIBRARY_PATH: libraries, VK_ICD_FILENAMES: driver, VK_DRIVER_FILES: driver };
}

async function fetchInto(folder: string): Promise<void> {
  const staging = await mkdtemp(`${folder}-`);
  try {
    await download(staging);
    const [archive] = (await readdir(staging)).filter((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get fetched no ${PACKAGE}`);
    const files = join(staging, 'files');
    await run('dpkg-deb', ['-x', join(staging, archive), files]);
    if (!existsSync(join(files, LIBRARIES, DRIVER))) throw new Error(`there is no ${DRIVER} in ${archive}`);
    await rm(folder, { recursive: true, force: true });
    await rename(files, folder);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Its lists may be older than what the archive has now. */
async function download(folder: string): Promise<void> {
  const fetching = () => run('apt-get', ['download', PACKAGE], { cwd: folder });
  await fetching()
    .catch(() => run('apt-get', ['update']).then(fetching))
    .catch((error: unknown) => {
      throw new Error(`apt-get cannot fetch Debian's ${PACKAGE}, which has the software device`, {
        cause: error,
      });
    });
}
