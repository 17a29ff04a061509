import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/local-stack/artifacts.ts';
import { withFileLock } from '../../../src/local-stack/file-lock.ts';
import { findCommand } from '../../../src/local-stack/java.ts';

const run = promisify(execFile);

/** A Prometheus server's program: that on the PATH, else the one of Debian's package, unpacked into the cache without being installed. */
export async function findPrometheus(): Promise<string> {
  const onPath = await findCommand('prometheus', process.env);
  if (onPath !== undefined) return onPath;
  const folder = join(cacheFolder(process.env), 'prometheus');
  const program = join(folder, 'usr/bin/prometheus');
  await mkdir(cacheFolder(process.env), { recursive: true });
  await withFileLock(`${folder}.lock`, async () => {
    if (existsSync(program)) return;
    await unpackPackage(folder).catch((error: unknown) => {
      throw new Error(
        'the tests of guardrails need a prometheus on the PATH (Debian: apt install prometheus)',
        {
          cause: error,
        },
      );
    });
  });
  return program;
}

async function unpackPackage(folder: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'millrace-prometheus-'));
  try {
    await download(work);
    const archive = (await readdir(work)).find((name) => name.endsWith('.deb')) ?? '';
    await run('dpkg', ['-x', join(work, archive), join(work, 'unpacked')]);
    await rm(folder, { recursive: true, force: true });
    await rename(join(work, 'unpacked'), folder).catch(async () => {
      // the cache is on another file system
      await run('cp', ['-r', join(work, 'unpacked'), folder]);
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** A machine that never fetched the lists of packages fetches them into the folder, not into its own. */
async function download(work: string): Promise<void> {
  const get = (...words: string[]) => run('apt-get', words, { cwd: work });
  await get('download', 'prometheus').catch(async () => {
    const own = ['-o', `Dir::State::lists=${join(work, 'lists')}`, '-o', `Dir::Cache=${join(work, 'cache')}`];
    await mkdir(join(work, 'lists', 'partial'), { recursive: true });
    await mkdir(join(work, 'cache', 'archives', 'partial'), { recursive: true });
    await get('update', '-qq', ...own);
    await get('download', ...own, 'prometheus');
  });
}
