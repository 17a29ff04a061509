import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local-stack/artifacts.ts';

const run = promisify(execFile);
const PROJECT = join(import.meta.dirname, '..', 'peers', 'simpy');
const REQUIREMENTS = join(PROJECT, 'requirements.txt');

export interface SimPyRun {
  readonly seconds: number;
  /** Arrivals and completions. */
  readonly events: number;
  /** All that SimPy scheduled for them. */
  readonly ownEvents: number;
  readonly meanWait: number;
  readonly version: string;
}

/** M/M/k in SimPy: see bench/peers/simpy. */
export async function runSimPy(
  python: string,
  servers: number,
  customers: number,
  seed: number,
  load: number,
): Promise<SimPyRun> {
  const figures = [servers, customers, seed, load].map(String);
  const { stdout } = await run(python, [join(PROJECT, 'waiting_line.py'), ...figures]);
  return JSON.parse(stdout) as SimPyRun;
}

/** The interpreter of a virtual environment with SimPy, made at its first use and again when its pin changes. */
export async function pythonWithSimPy(): Promise<string> {
  const folder = join(cacheFolder(process.env), 'venv-simpy');
  const python = join(folder, 'bin', 'python');
  const installed = join(folder, 'installed.txt');
  const wanted = await readFile(REQUIREMENTS, 'utf8');
  if (existsSync(python) && (await readFile(installed, 'utf8').catch(() => '')) === wanted) return python;
  await rm(folder, { recursive: true, force: true });
  await mkdir(cacheFolder(process.env), { recursive: true });
  await run('python3', ['-m', 'venv', folder]);
  const flags = ['--quiet', '--no-input', '--only-binary=:all:'];
  await run(python, ['-m', 'pip', 'install', ...flags, '-r', REQUIREMENTS]);
  await writeFile(installed, wanted);
  return python;
}
