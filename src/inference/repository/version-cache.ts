import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { type ModelFile, type PublishedModel, totalBytes } from '../../core/model/published-model.ts';
import type { ModelSource } from '../../ports/model-source.ts';
import { readInside } from './version-files.ts';

export interface VersionCacheOptions {
  folder: string;
  source: ModelSource;
  /** Of one version's files together. */
  bytesMax: number;
}

const CATALOGUE = 'catalogue.json';

/**
 * Files of published versions on this machine, each version in a folder of its digest, laid out as a model repository: `<sha256>/<family>/<version>/`.
 * A version is written aside and renamed into place when it is whole, so processes may share the folder; what is found there is checked again.
 */
export class VersionCache {
  readonly #options: VersionCacheOptions;

  constructor(options: VersionCacheOptions) {
    this.#options = options;
  }

  /**
   * @returns the root of the repository that holds the version
   * @throws MillraceError INVALID_MODEL, MODEL_UNAVAILABLE
   */
  async fetch(model: PublishedModel, over: AbortSignal): Promise<string> {
    const { bytesMax } = this.#options;
    const bytes = totalBytes(model.files);
    if (bytes > bytesMax)
      throw new MillraceError('INVALID_MODEL', 'the version is larger than a worker takes', {
        value: bytes,
        allowed: `${bytesMax} bytes (worker.modelBytesMax)`,
      });
    const root = this.#rootOf(model);
    if (await this.#isWhole(root, model)) return root;
    await rm(root, { recursive: true, force: true });
    const aside = join(this.#options.folder, `.${randomUUID()}`);
    try {
      await this.#write(aside, model, over);
      await rename(aside, root);
    } catch (error) {
      // another process of this machine may have been quicker
      if (!(error instanceof MillraceError) && (await this.#isWhole(root, model))) return root;
      throw error instanceof MillraceError ? error : unwritable(root, error);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
    return root;
  }

  async forget(model: PublishedModel): Promise<void> {
    await rm(this.#rootOf(model), { recursive: true, force: true });
  }

  async keep(text: string): Promise<void> {
    const aside = join(this.#options.folder, `.${randomUUID()}`);
    await mkdir(this.#options.folder, { recursive: true });
    await writeFile(aside, text);
    await rename(aside, join(this.#options.folder, CATALOGUE));
  }

  /** Undefined where nothing was kept. */
  async kept(): Promise<string | undefined> {
    try {
      return await readFile(join(this.#options.folder, CATALOGUE), 'utf8');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  #rootOf({ digest }: PublishedModel): string {
    return join(this.#options.folder, digest.replace('sha256:', ''));
  }

  async #isWhole(root: string, { family, version, files }: PublishedModel): Promise<boolean> {
    for (const { name, bytes, digest } of files) {
      try {
        const { bytes: found, digest: is } = await readInside(
          root,
          join(root, family, version, name),
          name,
          bytes,
        );
        if (found.byteLength !== bytes || is !== digest) return false;
      } catch (error) {
        if (error instanceof MillraceError) return false;
        throw error;
      }
    }
    return true;
  }

  async #write(root: string, model: PublishedModel, over: AbortSignal): Promise<void> {
    const folder = join(root, model.family, model.version);
    await mkdir(folder, { recursive: true });
    for (const file of model.files) await this.#fetchFile(model.source, file, join(folder, file.name), over);
  }

  async #fetchFile(place: string, file: ModelFile, path: string, over: AbortSignal): Promise<void> {
    const { name, bytes, digest } = file;
    const hash = createHash('sha256');
    let fetched = 0;
    const target = await open(path, 'wx');
    try {
      for await (const chunk of this.#options.source.read(place, name, bytes, over)) {
        hash.update(chunk);
        fetched += chunk.byteLength;
        await target.writeFile(chunk);
      }
      await target.sync();
    } finally {
      await target.close();
    }
    const is = `sha256:${hash.digest('hex')}`;
    if (fetched === bytes && is === digest) return;
    throw new MillraceError('INVALID_MODEL', `${name} is not the file that was published`, {
      value: `${fetched} bytes, ${is}`,
      allowed: `${bytes} bytes, ${digest}`,
      advice: 'Publish the version again when its source has the right file',
    });
  }
}

function unwritable(path: string, cause: unknown): MillraceError {
  const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  return new MillraceError('MODEL_UNAVAILABLE', `the version cannot be kept: ${why}`, {
    value: path,
    advice: 'See that worker.modelCache can be written to',
    cause,
  });
}
