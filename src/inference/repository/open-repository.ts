import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { FamilyContract } from '../../core/request/family.ts';
import { parseCostModel } from '../../core/signals/cost-model.ts';
import { ItemTableCache } from '../items/item-table-cache.ts';
import { OpenTables } from '../items/open-tables.ts';
import type { TableRenewal, VersionTables } from '../items/version-tables.ts';
import { checkDigest } from './check-digest.ts';
import { checkNames } from './check-names.ts';
import { configSchema } from './config.ts';
import { costSchema, typicalRows } from './cost.ts';
import { findExternalData } from './external-data.ts';
import { familyContract, inputDifference } from './family-contract.ts';
import { type Golden, goldenSchema } from './golden.ts';
import { type ModelVersion, modelVersion } from './model-version.ts';
import { parseAs, readJson, readYaml } from './parse-file.ts';
import { readInside } from './version-files.ts';

export interface RepositoryLimits {
  graphBytesMax: number;
  goldenBytesMax: number;
  configBytesMax: number;
}

export const DEFAULT_REPOSITORY_LIMITS: RepositoryLimits = {
  graphBytesMax: 512 * 1024 * 1024,
  goldenBytesMax: 64 * 1024 * 1024,
  configBytesMax: 64 * 1024,
};

export interface ModelFamily {
  family: string;
  /** Oldest first. */
  versions: readonly ModelVersion[];
  contract: FamilyContract;
}

/** A version that is there and cannot be used. */
export interface RefusedVersion {
  family: string;
  version: string;
  error: MillraceError;
}

/** Model families on disk: `<root>/<family>/<version>/{model.onnx, config.yaml, golden.json, cost.json}`. */
export interface ModelRepository {
  /** Real path. */
  readonly root: string;
  readonly families: readonly ModelFamily[];
  readonly refused: readonly RefusedVersion[];
  /** @throws MillraceError INVALID_MODEL: unknown, or why it was refused. */
  version(family: string, version: string): ModelVersion;
  /** The graph's bytes, held against the config's digest. @throws MillraceError INVALID_MODEL */
  readGraph(version: ModelVersion): Promise<Uint8Array<ArrayBuffer>>;
  /** @throws MillraceError INVALID_MODEL */
  readGolden(version: ModelVersion): Promise<Golden>;
  /** The version's item tables: loaded once, however many accelerators ask. @throws MillraceError INVALID_MODEL, MODEL_UNAVAILABLE */
  itemTables(version: ModelVersion): Promise<VersionTables>;
  /** Takes tables that were put into the folder since in place of those that are held; what is refused is listed at every look. */
  renewItemTables(): Promise<TableRenewal[]>;
  /** Of this process: repositories of published versions share it. */
  readonly tableCache: ItemTableCache;
}

/**
 * Reads the configs and cost models of a repository. A version with a fault is left out and listed with its reason; graphs
 * and golden cases are read and checked when a version is loaded.
 * @throws MillraceError INVALID_MODEL where `root` is no folder
 */
export async function openRepository(
  root: string,
  limits: RepositoryLimits = DEFAULT_REPOSITORY_LIMITS,
  tableCache: ItemTableCache = new ItemTableCache(),
): Promise<ModelRepository> {
  const realRoot = await realpath(root).catch((cause: unknown) => {
    throw new MillraceError('INVALID_MODEL', 'there is no model repository', { value: root, cause });
  });
  const refused: RefusedVersion[] = [];
  const families: ModelFamily[] = [];
  for (const family of await folders(realRoot)) {
    const versions = await readFamily(realRoot, family, limits, refused);
    if (versions.length > 0) families.push({ family, versions, contract: familyContract(family, versions) });
  }
  const tables = new OpenTables(realRoot, tableCache);
  return {
    root: realRoot,
    families,
    refused,
    version: (family, version) => findVersion(families, refused, family, version),
    readGraph: (version) => readGraph(realRoot, version, limits.graphBytesMax),
    readGolden: (version) => readGolden(realRoot, version, limits.goldenBytesMax),
    itemTables: (version) => tables.of(version),
    renewItemTables: () => tables.renew(),
    tableCache,
  };
}

async function folders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((cause: unknown) => {
    throw new MillraceError('INVALID_MODEL', 'cannot list the models', { value: path, cause });
  });
  return entries
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort();
}

async function readFamily(
  root: string,
  family: string,
  limits: RepositoryLimits,
  refused: RefusedVersion[],
): Promise<ModelVersion[]> {
  const versions: ModelVersion[] = [];
  for (const version of await folders(join(root, family))) {
    try {
      versions.push(await readVersion(root, family, version, limits));
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      refused.push({ family, version, error });
    }
  }
  versions.sort((a, b) => Number(a.version) - Number(b.version));
  const reference = versions.findLast((version) => version.variant === 'baseline') ?? versions.at(-1);
  return versions.filter((version) => {
    const difference = reference === undefined ? undefined : inputDifference(version, reference);
    if (difference === undefined) return true;
    refused.push({ family, version: version.version, error: new MillraceError('INVALID_MODEL', difference) });
    return false;
  });
}

async function readVersion(
  root: string,
  family: string,
  version: string,
  limits: RepositoryLimits,
): Promise<ModelVersion> {
  const label = `${family}/${version}`;
  const readText = async (name: string): Promise<string> => {
    const path = join(root, family, version, name);
    const { bytes } = await readInside(root, path, `${label}/${name}`, limits.configBytesMax);
    return Buffer.from(bytes).toString('utf8');
  };
  const configFile = `${label}/config.yaml`;
  const config = parseAs(configFile, configSchema, readYaml(configFile, await readText('config.yaml')));
  const costFile = `${label}/${config.cost}`;
  const cost = parseAs(costFile, costSchema, readJson(costFile, await readText(config.cost)));
  checkNames(configFile, config, { family, version });
  checkNames(costFile, cost, { family, version });
  const model = inFile(costFile, () => parseCostModel(cost));
  return inFile(configFile, () => modelVersion(config, model, typicalRows(cost)));
}

/** Puts the file's name before the reason of a refusal. */
function inFile<T>(file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError(error.code, `${file}: ${error.message}`, { cause: error });
  }
}

function findVersion(
  families: readonly ModelFamily[],
  refused: readonly RefusedVersion[],
  family: string,
  version: string,
): ModelVersion {
  const known = families.find((candidate) => candidate.family === family);
  const found = known?.versions.find((candidate) => candidate.version === version);
  if (found !== undefined) return found;
  const refusal = refused.find((candidate) => candidate.family === family && candidate.version === version);
  if (refusal !== undefined) throw refusal.error;
  const names = families.flatMap(({ family: name, versions }) =>
    versions.map((one) => `${name}@${one.version}`),
  );
  throw new MillraceError('INVALID_MODEL', 'the model repository has no such version', {
    value: `${family}@${version}`,
    allowed: names.join(', ') || 'none',
  });
}

async function readGraph(
  root: string,
  version: ModelVersion,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const label = `${version.family}/${version.version}/${version.files.graph}`;
  const { bytes, digest } = await readInside(root, join(root, label), label, bytesMax);
  checkDigest(label, digest, { digest: version.digest, by: 'config' });
  const external = findExternal(label, bytes);
  if (external !== undefined) {
    throw new MillraceError('INVALID_MODEL', `${label} keeps a tensor in another file`, {
      value: external,
      advice: 'Export it with all weights inside the graph file.',
    });
  }
  return bytes;
}

function findExternal(label: string, bytes: Uint8Array): string | undefined {
  try {
    return findExternalData(bytes);
  } catch (cause) {
    throw new MillraceError('INVALID_MODEL', `${label} is not a whole ONNX file`, { cause });
  }
}

async function readGolden(root: string, version: ModelVersion, bytesMax: number): Promise<Golden> {
  const label = `${version.family}/${version.version}/${version.files.golden}`;
  const { bytes } = await readInside(root, join(root, label), label, bytesMax);
  const golden = parseAs(label, goldenSchema, readJson(label, Buffer.from(bytes).toString('utf8')));
  checkNames(label, golden, version);
  return golden;
}
