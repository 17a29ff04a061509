import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What a fuzzer's command prints, as far as tests look at it. */
export interface Summary {
  inputs: number;
  pastOuterLayer: number;
  outcomes: Readonly<Record<string, number>>;
  failures: readonly string[];
}

/** Runs a fuzzer's command as a process of its own. Rejects, with what it found, where it ends with another exit code than 0. */
export async function runFuzzerCommand(name: string, inputs: number, seed: number): Promise<Summary> {
  const args = [`test/fuzz/${name}.ts`, '--inputs', String(inputs), '--seed', String(seed)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  return JSON.parse(stdout) as Summary;
}
