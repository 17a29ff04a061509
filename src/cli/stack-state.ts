import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { fileError } from '../config/user-file.ts';

const launchSchema = z.object({
  command: z.string().min(1),
  arguments: z.array(z.string()),
  workingDirectory: z.string().min(1),
  logFile: z.string().min(1),
});

const stateSchema = z.object({
  environment: z.record(z.string(), z.string()),
  processes: z.array(
    z.object({
      name: z.string(),
      pid: z.int().positive(),
      commandLine: z.string().min(1),
      launch: launchSchema.optional(),
    }),
  ),
  dir: z.string().optional(),
  project: z.string().optional(),
});

/** What `stack up` started, for the commands that come after it. */
export type StackState = z.infer<typeof stateSchema>;

/** undefined where nothing is up. A file that cannot be read as a state counts as none: nothing can be ended by it safely. */
export async function readStackState(file: string): Promise<StackState | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  if (text === '') return undefined;
  const parsed = stateSchema.safeParse(parseJson(text));
  return parsed.success ? parsed.data : undefined;
}

/** @throws MillraceError INVALID_CONFIG where it cannot be written; what was there before stays */
export async function writeStackState(file: string, state: StackState): Promise<void> {
  const partial = `${file}.${process.pid}`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(partial, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600 });
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw fileError('what is up cannot be noted', file, error, 'written');
  }
}

export async function removeStackState(file: string): Promise<void> {
  await rm(file, { force: true });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
