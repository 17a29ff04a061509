import { createHash, randomUUID } from 'node:crypto';
import {
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { type ModelFile, type PublishedModel, totalBytes } from '../../core/model/published-model.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ModelSource } from '../../ports/model-source.ts';
import { digestInside } from './version-files.ts';

export interface VersionCacheOptions {
  folder: string;
  source: ModelSource;
  /** Of one version's files together. */
  bytesMax: number;
  clock: Clock;
}

const CATALOGUE = 'catalogue.json';
/** No fetch takes so long: what lies aside for longer is of a process that was killed. */
const ASIDE_MS_MAX = 24 * 3_600_000;
/** What somebody asked for within this time may be of a process that knows a newer catalogue, and is about to load it. */
const ASKED_FOR_MS = 600_000;
/** A version's folder: of a digest. Nothing else in the cache is ours to remove. */
const DIGEST_FOLDER = /^[0-9a-f]{64}$/;

/**
 * Files of published versions on this machine, each version in a folder of its digest, laid out as a model repository: `<sha256>/<family>/<version>/`.
 * A version is written aside and renamed into place when it is whole, so processes may share the folder; what is found there is checked again. Nothing that
 * another process may be reading is taken away for that: a file that is not what it should be is replaced by a rename, and two versions of the same
 * files share a folder.
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
    const root = await this.#rootOf(model);
    if (await this.#isWhole(root, model)) {
      await this.#touch(folderOf(root, model));
      return root;
    }
    const aside = await this.#aside();
    try {
      await this.#write(aside, model, over);
      await moveInto(root, aside, model);
    } catch (error) {
      throw error instanceof MillraceError ? error : unwritable(root, error);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
    return root;
  }

  async forget(model: PublishedModel): Promise<void> {
    await removeVersion(folderOf(await this.#rootOf(model), model));
  }

  /**
   * Removes every version that is none of these and that nobody asked for lately. Processes that share the folder may still serve it: once loaded, a
   * version needs its files no more.
   */
  async retain(kept: readonly PublishedModel[]): Promise<void> {
    const { folder, clock } = this.#options;
    const names = new Set(kept.map((model) => folderOf(digestFolder(model), model)));
    for (const place of await this.#places()) {
      if (names.has(place)) continue;
      const path = join(folder, place);
      const since = await stat(path).catch(() => undefined);
      if (since === undefined || clock.wallMs() - since.mtimeMs < ASKED_FOR_MS) continue;
      await removeVersion(path);
    }
  }

  async keep(text: string): Promise<void> {
    await mkdir(this.#options.folder, { recursive: true });
    const aside = join(this.#options.folder, `.${randomUUID()}`);
    try {
      await writeFile(aside, text);
      await rename(aside, join(this.#options.folder, CATALOGUE));
    } finally {
      await rm(aside, { force: true });
    }
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

  /** A real path, as the files below are held against it. */
  async #rootOf(model: PublishedModel): Promise<string> {
    const { folder } = this.#options;
    try {
      const real = await realpath(folder).catch(async () => {
        await mkdir(folder, { recursive: true });
        return realpath(folder);
      });
      return join(real, digestFolder(model));
    } catch (error) {
      throw unwritable(folder, error);
    }
  }

  /** Of every version that lies here: `<sha256>/<family>/<version>`. */
  async #places(): Promise<string[]> {
    const { folder } = this.#options;
    const within = async (place: string): Promise<string[]> =>
      (await readdir(join(folder, place)).catch(() => [])).map((name) => join(place, name));
    const roots = (await within('')).filter((name) => DIGEST_FOLDER.test(name));
    const families = (await Promise.all(roots.map(within))).flat();
    return (await Promise.all(families.map(within))).flat();
  }

  /** Says that the version is asked for, to whoever would remove it. */
  async #touch(path: string): Promise<void> {
    const now = new Date(this.#options.clock.wallMs());
    // In a folder that cannot be written to nobody removes anything either.
    await utimes(path, now, now).catch(() => undefined);
  }

  /** A place for what is not whole yet. What killed processes left at theirs is removed on the way. */
  async #aside(): Promise<string> {
    const { folder, clock } = this.#options;
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const since = name.startsWith('.') ? await stat(path).catch(() => undefined) : undefined;
      if (since !== undefined && clock.wallMs() - since.mtimeMs > ASIDE_MS_MAX)
        await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }
    return join(folder, `.${randomUUID()}`);
  }

  async #isWhole(root: string, model: PublishedModel): Promise<boolean> {
    for (const { name, bytes, digest } of model.files) {
      try {
        const found = await digestInside(root, join(folderOf(root, model), name), name);
        if (found.bytes !== bytes || found.digest !== digest) return false;
      } catch (error) {
        if (error instanceof MillraceError) return false;
        throw error;
      }
    }
    return true;
  }

  async #write(root: string, model: PublishedModel, over: AbortSignal): Promise<void> {
    const folder = folderOf(root, model);
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

function digestFolder({ digest }: PublishedModel): string {
  return digest.replace('sha256:', '');
}

/** The folders above it stay where another version has the same files. */
async function removeVersion(place: string): Promise<void> {
  await rm(place, { recursive: true, force: true });
  for (const parent of [dirname(place), dirname(dirname(place))]) await rmdir(parent).catch(() => undefined);
}

function folderOf(root: string, { family, version }: PublishedModel): string {
  return join(root, family, version);
}

/** Where the folder is there already, file by file: each is there at any moment, and of whatever process the same. */
async function moveInto(root: string, aside: string, model: PublishedModel): Promise<void> {
  try {
    await rename(aside, root);
    return;
  } catch (error) {
    if (!isThere(error)) throw error;
  }
  const [from, to] = [folderOf(aside, model), folderOf(root, model)];
  await mkdir(to, { recursive: true });
  for (const { name } of model.files) await rename(join(from, name), join(to, name));
}

function isThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST');
}

function unwritable(path: string, cause: unknown): MillraceError {
  const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  return new MillraceError('MODEL_UNAVAILABLE', `the version cannot be kept: ${why}`, {
    value: path,
    advice: 'See that worker.modelCache can be written to',
    cause,
  });
}
