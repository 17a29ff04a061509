import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/local-stack/artifacts.ts';
import { withFileLock } from '../../../src/local-stack/file-lock.ts';
import { registryThreads } from '../../registry-threads.ts';

const run = promisify(execFile);
const REQUIREMENTS = 'examples/clients/python/requirements.txt';

/** A virtual environment with the pinned clients, made once per user and again when the pins change. Answers its interpreter. */
export async function pythonWithClients(): Promise<string> {
  const folder = join(cacheFolder(process.env), 'venv-clients');
  const python = join(folder, 'bin', 'python');
  const installed = join(folder, 'installed.txt');
  const wanted = await readFile(REQUIREMENTS, 'utf8');
  await mkdir(cacheFolder(process.env), { recursive: true });
  await withFileLock(`${folder}.lock`, async () => {
    if (existsSync(python) && (await readFile(installed, 'utf8').catch(() => '')) === wanted) return;
    await rm(folder, { recursive: true, force: true });
    await run('python3', ['-m', 'venv', folder]).catch((error: unknown) => {
      throw new Error('the tests of Python clients need python3 (3.9 or newer) with its module venv', {
        cause: error,
      });
    });
    await run(python, ['-m', 'pip', 'install', '--quiet', '--no-input', '-r', REQUIREMENTS]);
    await writeFile(installed, wanted);
  });
  return python;
}

/** A script that has not ended by then hangs. */
const HANGS_AFTER_MS = 120_000;

/**
 * Runs a script to its end and answers what it wrote on standard output.
 * @throws Error with what it wrote on standard error; of one that hangs, where each of its threads is, and what the registry does
 */
export async function runPython(
  python: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const running = run(python, ['-X', 'faulthandler', ...args], {
    env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1', ...environment },
    maxBuffer: 16 * 2 ** 20,
  });
  // Not execFile's own timeout: it closes standard error before it kills, and with it goes what the fault handler writes.
  let registry: Promise<string> | undefined;
  const timer = setTimeout(() => {
    registry = registryThreads().finally(() => running.child.kill('SIGABRT'));
  }, HANGS_AFTER_MS);
  try {
    return (await running).stdout;
  } catch (error) {
    if (registry === undefined) throw error;
    throw new Error(`${String(error)}\n${await registry}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
