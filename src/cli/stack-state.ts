import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { fileError } from '../config/user-file.ts';
import { mapping, whole } from '../core/json-values.ts';

const launchSchema = v.object({
  command: v.pipe(v.string(), v.minLength(1)),
  arguments: v.array(v.string()),
  workingDirectory: v.pipe(v.string(), v.minLength(1)),
  logFile: v.pipe(v.string(), v.minLength(1)),
});

/** Of any names, also of those that `recordOf` refuses. */
const environmentSchema = v.pipe(mapping, v.custom<Record<string, string>>(holdsTexts));

const stateSchema = v.object({
  environment: environmentSchema,
  processes: v.array(
    v.object({
      name: v.string(),
      pid: v.pipe(whole, v.gtValue(0)),
      commandLine: v.pipe(v.string(), v.minLength(1)),
      launch: v.optional(launchSchema),
    }),
  ),
  dir: v.optional(v.string()),
  project: v.optional(v.string()),
});

/** What `stack up` started, for the commands that come after it. */
export type StackState = v.InferOutput<typeof stateSchema>;

/** undefined where nothing is up. A file that cannot be read as a state counts as none: nothing can be ended by it safely. */
export async function readStackState(file: string): Promise<StackState | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  if (text === '') return undefined;
  const parsed = v.safeParse(stateSchema, parseJson(text));
  return parsed.success ? parsed.output : undefined;
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

function holdsTexts(value: unknown): boolean {
  return Object.values(value ?? {}).every((text) => typeof text === 'string');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
