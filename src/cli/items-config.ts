import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { TABLE_NAME } from '../inference/items/manifest.ts';
import { configSchema } from '../inference/repository/config.ts';
import { parseAs, readYaml } from '../inference/repository/parse-file.ts';

/** The table that is to be built, and what config.yaml of its version says of it. */
export interface ConfiguredTable {
  name: string;
  /** Whether an input names it. */
  isNamed: boolean;
  /** The input, and how many values a row of it has. */
  input?: { name: string; width: number };
}

/**
 * @param name as the user gave it; where left out, the one table that the config names
 * @throws MillraceError INVALID_CONFIG for a name that is none, or where none can be told; INVALID_MODEL for a config that cannot be read
 */
export async function tableOf(folder: string, name: string | undefined): Promise<ConfiguredTable> {
  const inputs = (await configuredInputs(folder)).filter(({ table }) => table !== undefined);
  const names = [...new Set(inputs.map(({ table }) => table?.name ?? ''))];
  const wanted = name ?? (names.length === 1 ? names[0] : undefined);
  if (wanted === undefined)
    throw new MillraceError('INVALID_CONFIG', 'which table is it?', {
      ...(names.length === 0 ? {} : { allowed: names.join(', ') }),
      advice: 'Name it by --table, or in config.yaml of the folder.',
    });
  if (!TABLE_NAME.test(wanted))
    throw new MillraceError('INVALID_CONFIG', 'no table can have this name', {
      value: wanted,
      allowed: 'lower-case letters, digits, _ and -, beginning with a letter',
    });
  const input = inputs.find(({ table }) => table?.name === wanted);
  if (input === undefined) return { name: wanted, isNamed: false };
  const width = input.shape.slice(1).reduce((product, size) => product * size, 1);
  return { name: wanted, isNamed: true, input: { name: input.name, width } };
}

async function configuredInputs(folder: string) {
  const file = join(folder, 'config.yaml');
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  return text === undefined ? [] : parseAs(file, configSchema, readYaml(file, text)).inputs;
}

/** @throws MillraceError INVALID_CONFIG where the input takes other rows */
export function checkWidth({ name, input }: ConfiguredTable, columns: readonly string[]): void {
  if (input === undefined || input.width === columns.length) return;
  throw new MillraceError(
    'INVALID_CONFIG',
    `the table ${name} would have another width than the input ${input.name}`,
    {
      value: `${columns.length} columns`,
      allowed: `${input.width}`,
      advice: 'Name as many columns of features as the model takes, in its order.',
    },
  );
}
