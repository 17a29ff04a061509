import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local-stack/artifacts.ts';
import { withFileLock } from '../../src/local-stack/file-lock.ts';

const run = promisify(execFile);

/** What others wrote and we speak with, from wheels: servers of the Open Inference Protocol, and Feast, which fills online stores. */
export const SERVERS = ['kserve', 'triton', 'mlserver', 'feast'] as const;

export type ServerName = (typeof SERVERS)[number];

/**
 * Triton embeds the system's own libpython, and its wheel is for Linux on x64. The pins of all of them are for this release.
 */
const PYTHON = '/usr/bin/python3.11';

/** What is imported is compiled into the environment's own folder: most of what pip would compile never is. */
export function pythonFlags(python: string): string[] {
  return ['-X', `pycache_prefix=${join(python, '../../compiled')}`];
}

function requirementsOf(server: ServerName): string {
  return join(import.meta.dirname, 'servers', `${server}.requirements.txt`);
}

/**
 * The interpreter of a virtual environment with the server, made once per user and again when its pins change.
 * @throws Error with the reason where it cannot be made here
 */
export async function pythonWith(server: ServerName): Promise<string> {
  const folder = join(cacheFolder(process.env), `venv-${server}`);
  const python = join(folder, 'bin', 'python');
  const installed = join(folder, 'installed.txt');
  const wanted = await readFile(requirementsOf(server), 'utf8');
  await mkdir(cacheFolder(process.env), { recursive: true });
  await withFileLock(`${folder}.lock`, async () => {
    if (existsSync(python) && (await readFile(installed, 'utf8').catch(() => '')) === wanted) return;
    await rm(folder, { recursive: true, force: true });
    await makeEnvironment(folder, python, requirementsOf(server));
    await writeFile(installed, wanted);
  });
  return python;
}

async function makeEnvironment(folder: string, python: string, requirements: string): Promise<void> {
  if (!existsSync(PYTHON))
    throw new Error(`there is no ${PYTHON} (Debian: apt install python3.11 python3.11-venv)`);
  await run(PYTHON, ['-m', 'venv', folder]).catch((error: unknown) => {
    throw new Error(`${PYTHON} makes no virtual environment (Debian: apt install python3.11-venv)`, {
      cause: error,
    });
  });
  const flags = ['--quiet', '--no-input', '--no-deps', '--only-binary=:all:', '--no-compile'];
  await run(python, ['-m', 'pip', 'install', ...flags, '-r', requirements]).catch((error: unknown) => {
    throw new Error(`pip cannot install ${requirements}: ${lastLine(error)}`, { cause: error });
  });
}

function lastLine(error: unknown): string {
  const { stderr = '' } = error as { stderr?: string };
  return stderr.trimEnd().split('\n').at(-1) ?? '';
}
