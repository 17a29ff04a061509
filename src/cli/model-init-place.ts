import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { createOnnxCpuAccelerator } from '../inference/onnx-cpu/accelerator.ts';
import { inputDifference } from '../inference/repository/family-contract.ts';
import type { ModelVersion } from '../inference/repository/model-version.ts';
import { openRepository } from '../inference/repository/open-repository.ts';
import type { CliContext } from './context.ts';

/**
 * The number of a version to be made: the one that was named, or the next that is free.
 * @throws MillraceError INVALID_CONFIG where it is there already and may not be replaced
 */
export async function versionNumber(
  out: string,
  family: string,
  { modelVersion, force }: { modelVersion?: number | undefined; force: boolean },
): Promise<number> {
  const folder = join(out, family);
  if (modelVersion === undefined) return (await newestVersion(folder)) + 1;
  const place = join(folder, String(modelVersion));
  if (force || !existsSync(place)) return modelVersion;
  throw new MillraceError('INVALID_CONFIG', 'the version is there already', {
    value: place,
    allowed: 'another --model-version, or --force to replace it',
    advice: 'Without --model-version it gets the next number that is free',
  });
}

async function newestVersion(folder: string): Promise<number> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw fileError('the versions of the family cannot be listed', folder, error, 'read');
  });
  return names
    .filter((name) => /^[1-9]\d*$/.test(name))
    .reduce((max, name) => Math.max(max, Number(name)), 0);
}

/**
 * Does to a version what a worker does before it serves it: reads its files, opens the graph, runs the golden cases.
 * @param repository where it lies by itself
 * @param out the repository that it is for: other versions of the family there take the same inputs
 * @throws MillraceError INVALID_MODEL
 */
export async function checkAsWorker(
  { clock }: Pick<CliContext, 'clock'>,
  repository: string,
  { out, family, version }: { out: string; family: string; version: string },
): Promise<void> {
  const opened = await openRepository(repository);
  const made = opened.version(family, version);
  await checkFamily(out, made);
  const accelerator = createOnnxCpuAccelerator({ repository: opened, clock });
  try {
    await accelerator.load(family, version);
  } finally {
    await accelerator.close();
  }
}

async function checkFamily(out: string, made: ModelVersion): Promise<void> {
  const { families } = await openRepository(out);
  const versions = families.find(({ family }) => family === made.family)?.versions ?? [];
  const others = versions.filter(({ version }) => version !== made.version);
  const reference = others.findLast(({ variant }) => variant === 'baseline') ?? others.at(-1);
  const difference = reference === undefined ? undefined : inputDifference(made, reference);
  if (difference === undefined) return;
  throw new MillraceError('INVALID_MODEL', difference, {
    advice: 'A request is for any version of its family: give this model a family of its own (--family).',
  });
}
