import { createHash } from 'node:crypto';
import {
  CONFIG_FILE,
  MODEL_LIMITS,
  type ModelFile,
  manifestText,
  type PublishedModel,
} from '../../core/model/published-model.ts';
import type { ModelSource } from '../../ports/model-source.ts';
import { manifestSchema, TABLE_LIMITS } from '../items/manifest.ts';
import { manifestFile, rowsFile } from '../items/read-item-table.ts';
import { checkDigest } from './check-digest.ts';
import { checkNames } from './check-names.ts';
import { configSchema, type ModelConfig } from './config.ts';
import { costSchema } from './cost.ts';
import { goldenSchema } from './golden.ts';
import { DEFAULT_REPOSITORY_LIMITS } from './open-repository.ts';
import { parseAs, readJson, readYaml } from './parse-file.ts';

const CONFIG_BYTES_MAX = 64 * 1024;

/**
 * A version as it can be published: its config, the files that the config names, item tables too, and their digests. Their format, names and digests are checked; the graph is not run. Other files in its place are not part of it.
 *
 * @param place of its files, as `source` reads it
 * @throws MillraceError INVALID_MODEL, MODEL_UNAVAILABLE
 */
export async function describeVersion(
  source: ModelSource,
  place: string,
  over: AbortSignal,
): Promise<Omit<PublishedModel, 'source'>> {
  const config = await readWhole(source, place, CONFIG_FILE, CONFIG_BYTES_MAX, over);
  const parsed = parseAs(CONFIG_FILE, configSchema, readYaml(CONFIG_FILE, config.toString('utf8')));
  const { family } = parsed;
  const version = String(parsed.version);
  const { configBytesMax, goldenBytesMax } = DEFAULT_REPOSITORY_LIMITS;
  const files = new Map([[CONFIG_FILE, fileOf(CONFIG_FILE, config)]]);
  for (const [name, schema, bytesMax] of [
    [parsed.cost, costSchema, configBytesMax],
    [parsed.golden, goldenSchema, goldenBytesMax],
  ] as const) {
    const contents = await readWhole(source, place, name, bytesMax, over);
    // A number that was published is never free again: what no worker could run is not to be published at all.
    checkNames(name, parseAs(name, schema, readJson(name, contents.toString('utf8'))), { family, version });
    files.set(name, fileOf(name, contents));
  }
  const { file } = parsed.model;
  const graph = files.get(file) ?? (await measure(source, place, file, over));
  checkDigest(file, graph.digest, { digest: parsed.model.digest, by: 'config' });
  files.set(file, graph);
  for (const table of tableNames(parsed)) {
    const name = manifestFile(table);
    const contents = await readWhole(source, place, name, TABLE_LIMITS.manifestBytes, over);
    const manifest = parseAs(name, manifestSchema, readJson(name, contents.toString('utf8')));
    const rows = await measure(source, place, rowsFile(table), over);
    checkDigest(rows.name, rows.digest, { digest: manifest.digest, by: 'description' });
    files.set(name, fileOf(name, contents));
    files.set(rows.name, rows);
  }
  const sorted = [...files.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { family, version, digest: digestOf(Buffer.from(manifestText(sorted))), files: sorted };
}

function tableNames({ inputs }: ModelConfig): Set<string> {
  return new Set(inputs.flatMap(({ table }) => (table === undefined ? [] : [table.name])));
}

async function readWhole(
  source: ModelSource,
  place: string,
  name: string,
  bytesMax: number,
  over: AbortSignal,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.read(place, name, bytesMax, over)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function measure(
  source: ModelSource,
  place: string,
  name: string,
  over: AbortSignal,
): Promise<ModelFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of source.read(place, name, MODEL_LIMITS.bytes, over)) {
    hash.update(chunk);
    bytes += chunk.byteLength;
  }
  return { name, bytes, digest: `sha256:${hash.digest('hex')}` };
}

function fileOf(name: string, contents: Uint8Array): ModelFile {
  return { name, bytes: contents.byteLength, digest: digestOf(contents) };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
