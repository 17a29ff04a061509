import { createHash } from 'node:crypto';
import {
  CONFIG_FILE,
  MODEL_LIMITS,
  type ModelFile,
  manifestText,
  type PublishedModel,
} from '../../core/model/published-model.ts';
import type { ModelSource } from '../../ports/model-source.ts';
import { configSchema } from './config.ts';
import { parseAs, readYaml } from './parse-file.ts';

const CONFIG_BYTES_MAX = 64 * 1024;

/**
 * A version as it can be published: its config, the files that the config names, and their digests. Other files in its place are not part of it.
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
  const files: ModelFile[] = [fileOf(CONFIG_FILE, config)];
  for (const name of new Set([parsed.model.file, parsed.golden, parsed.cost]))
    files.push(await measure(source, place, name, over));
  files.sort((a, b) => (a.name < b.name ? -1 : 1));
  const digest = digestOf(Buffer.from(manifestText(files)));
  return { family: parsed.family, version: String(parsed.version), digest, files };
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
