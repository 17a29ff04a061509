import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { folderModelSource } from '../../../src/adapters/model-source/folder.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { modelBody } from '../../../src/core/model/model-proof.ts';
import type { PublishedModel } from '../../../src/core/model/published-model.ts';
import { modelLibrary } from '../../../src/inference/model-library.ts';
import { describeVersion } from '../../../src/inference/repository/describe-version.ts';
import { growingRepository } from '../../../src/inference/repository/growing-repository.ts';
import { openRepository } from '../../../src/inference/repository/open-repository.ts';
import type { ModelSource } from '../../../src/ports/model-source.ts';

const REPOSITORY = 'models/repository';
const source = folderModelSource();
const never = new AbortController().signal;

/** A repository with version 1 alone, version 2 published from elsewhere, and an empty cache. */
async function setUp({
  from = source,
  bytesMax = 2 ** 30,
  fetchTimeoutMs = 60_000,
  named = async (cache: string): Promise<string> => cache,
} = {}) {
  const work = await mkdtemp(join(tmpdir(), 'millrace-library-'));
  const [models, origin, folder] = ['models', 'origin', 'cache'].map((name) => join(work, name)) as [
    string,
    string,
    string,
  ];
  await cp(join(REPOSITORY, 'ranker/1'), join(models, 'ranker/1'), { recursive: true });
  await cp(join(REPOSITORY, 'ranker/2'), origin, { recursive: true });
  const repository = growingRepository(await openRepository(models));
  const cache = await named(folder);
  const open = () =>
    modelLibrary({
      folder: cache,
      source: from,
      bytesMax,
      fetchTimeoutMs,
      repository,
      clock: systemClock(),
      logger: silentTelemetry().logger,
    });
  const publish = async (): Promise<PublishedModel> => ({
    ...(await describeVersion(source, origin, never)),
    source: origin,
  });
  return { models, origin, folder, repository, library: open(), open, publish };
}

describe('a library of published versions', () => {
  it('fetches a version into a folder of its digest, and makes it known', async () => {
    const { folder, repository, library, publish } = await setUp();
    const model = await publish();
    expect(await library.fetch(model, never)).toEqual({ isOfFolder: false });
    expect(await readdir(folder)).toEqual([model.digest.replace('sha256:', '')]);
    const version = repository.version('ranker', '2');
    expect(version.variant).toBe('enhanced');
    expect((await repository.readGraph(version)).byteLength).toBeGreaterThan(1_000);
    expect((await repository.readGolden(version)).cases.length).toBeGreaterThan(0);
    expect(repository.families[0]?.versions.map((known) => known.version)).toEqual(['1']);
  });

  it('has versions in the text that signatures of their publication are checked by', async () => {
    const { publish } = await setUp();
    const model = await publish();
    expect(modelBody(model)).toBe(JSON.stringify(model));
  });

  it('takes from the folder what is whole there, and fetches anew what is not', async () => {
    const { folder, origin, library, open, publish } = await setUp();
    const model = await publish();
    await library.fetch(model, never);
    const moved = { ...model, source: join(origin, 'gone') };
    await open().fetch(moved, never);
    const kept = join(folder, model.digest.replace('sha256:', ''), 'ranker/2/model.onnx');
    await truncate(kept, 10);
    await expect(open().fetch(moved, never)).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
    await open().fetch(model, never);
    expect((await readFile(kept)).equals(await readFile(join(origin, 'model.onnx')))).toBe(true);
  });

  it.each([
    ['shorter', (path: string) => truncate(path, 1_000)],
    ['other', async (path: string) => writeFile(path, Buffer.alloc((await readFile(path)).length))],
    ['longer', (path: string) => writeFile(path, 'more', { flag: 'a' })],
  ])('refuses a file that is %s than what was published, and keeps nothing of it', async (_how, change) => {
    const { folder, origin, library, publish } = await setUp();
    const model = await publish();
    await change(join(origin, 'model.onnx'));
    const fetching = library.fetch(model, never);
    await expect(fetching).rejects.toMatchObject({ code: 'INVALID_MODEL' });
    await expect(fetching).rejects.toThrow(/model\.onnx is (not the file that|larger than) was published/);
    expect(await readdir(folder)).toEqual([]);
  });

  it('refuses a version whose config is of another', async () => {
    const { origin, library, publish } = await setUp();
    const model = { ...(await publish()), version: '7' };
    await expect(library.fetch(model, never)).rejects.toThrow(/is about another version than its folder/);
    expect(origin).toBeDefined();
  });

  it('refuses a version that takes other inputs than its family', async () => {
    const { origin, library, publish } = await setUp();
    const path = join(origin, 'config.yaml');
    const config = await readFile(path, 'utf8');
    await writeFile(path, config.replace('name: item, side', 'name: items, side'));
    await expect(library.fetch(await publish(), never)).rejects.toThrow(/takes other inputs than ranker\/1/);
  });

  it('refuses a version that takes less than its family does', async () => {
    const { origin, library, publish } = await setUp();
    const path = join(origin, 'config.yaml');
    const config = await readFile(path, 'utf8');
    await writeFile(path, config.replace(/candidatesMax: \d+/, 'candidatesMax: 8'));
    await expect(library.fetch(await publish(), never)).rejects.toThrow(
      /candidatesMax is 8, and its family takes 2048/,
    );
  });

  it('leaves a version of the model folder where it is, and refuses another of that name', async () => {
    const { models, origin, library, publish } = await setUp();
    await cp(join(models, 'ranker/1'), origin, { recursive: true });
    const model = await publish();
    expect(await library.fetch(model, never)).toEqual({ isOfFolder: true });
    await appendFile(join(origin, 'golden.json'), '\n');
    await expect(library.fetch(await publish(), never)).rejects.toThrow(/has another ranker@1/);
  });

  it('refuses what is larger than a worker takes, before it fetches any of it', async () => {
    const { folder, library, publish } = await setUp({ bytesMax: 1_000 });
    await mkdir(folder);
    await expect(library.fetch(await publish(), never)).rejects.toThrow(
      /larger than a worker takes.*modelBytesMax/,
    );
    expect(await readdir(folder)).toEqual([]);
  });

  it('gives a source up that takes too long', async () => {
    const endless: ModelSource = {
      async *read(_place, _file, _bytesMax, over) {
        await new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
        yield new Uint8Array(1);
        throw new Error('ended');
      },
    };
    const { folder, library, publish } = await setUp({ from: endless, fetchTimeoutMs: 20 });
    const fetching = library.fetch(await publish(), never);
    await expect(fetching).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
    await expect(fetching).rejects.toThrow(/longer than 20 ms/);
    expect(await readdir(folder)).toEqual([]);
  });

  it('fetches once what several workers want at once', async () => {
    let reads = 0;
    const counting: ModelSource = {
      read: (...how) => {
        reads += 1;
        return source.read(...how);
      },
    };
    const { library, publish } = await setUp({ from: counting });
    const model = await publish();
    await Promise.all([library.fetch(model, never), library.fetch(model, never)]);
    expect(reads).toBe(model.files.length);
  });

  it('forgets a version, and keeps a catalogue', async () => {
    const { folder, repository, library, open, publish } = await setUp();
    const model = await publish();
    await library.fetch(model, never);
    await library.keepCatalogue('a catalogue');
    expect(await open().keptCatalogue()).toBe('a catalogue');
    await library.forget(model);
    expect(await readdir(folder)).toEqual(['catalogue.json']);
    expect(() => repository.version('ranker', '2')).toThrow(/no such version/);
  });

  describe('retains what is named', () => {
    /** Version 2 as an earlier process left it in the cache, long ago, beside what is not of the library. */
    async function leftBehind() {
      const set = await setUp();
      const model = await set.publish();
      await set.open().fetch(model, never);
      const place = join(set.folder, model.digest.replace('sha256:', ''), 'ranker/2');
      const long = Date.now() / 1_000 - 3_600;
      await utimes(place, long, long);
      await mkdir(join(set.folder, 'notes'));
      return { ...set, model, place };
    }

    it('and removes what no catalogue names any more, and nothing that is not its own', async () => {
      const { folder, library, model } = await leftBehind();
      await library.retain([model]);
      expect((await readdir(folder)).sort()).toEqual([model.digest.replace('sha256:', ''), 'notes']);
      await library.retain([{ ...model, version: '7' }]);
      expect(await readdir(folder)).toEqual(['notes']);
      await library.retain([]);
    });

    it('and what this process serves, whatever the catalogue says', async () => {
      const { repository, library, model, place } = await leftBehind();
      await library.fetch(model, never);
      const long = Date.now() / 1_000 - 3_600;
      await utimes(place, long, long);
      await library.retain([]);
      expect((await repository.readGraph(repository.version('ranker', '2'))).byteLength).toBeGreaterThan(0);
      await library.forget(model);
      expect(await readdir(join(place, '..')).catch(() => 'gone')).toBe('gone');
    });

    it('and what another process of the machine asked for just now: it may know a newer catalogue', async () => {
      const { folder, library, open, model } = await leftBehind();
      await open().fetch(model, never);
      await library.retain([]);
      expect((await readdir(folder)).sort()).toEqual([model.digest.replace('sha256:', ''), 'notes']);
    });

    it('and is waited for by who fetches meanwhile, as it would find what is being removed', async () => {
      const order: string[] = [];
      const from: ModelSource = {
        read: (...how) => {
          order.push('read');
          return source.read(...how);
        },
      };
      const { folder, library, publish } = await setUp({ from });
      const long = Date.now() / 1_000 - 3_600;
      for (let n = 0; n < 60; n += 1) {
        const place = join(folder, String(n).padStart(64, '0'), 'ranker/9');
        await mkdir(place, { recursive: true });
        await utimes(place, long, long);
      }
      const retained = library.retain([]).then(() => order.push('retained'));
      const model = await publish();
      await Promise.all([retained, library.fetch(model, never)]);
      expect(order[0]).toBe('retained');
      expect(await readdir(folder)).toEqual([model.digest.replace('sha256:', '')]);
    });

    it('where nothing was ever fetched', async () => {
      const { library } = await setUp();
      await library.retain([]);
    });
  });

  it.each([
    ['relative to where it was started', async (cache: string) => relative(process.cwd(), cache)],
    [
      'by a link',
      async (cache: string) => {
        await mkdir(cache);
        await symlink(cache, `${cache}-link`);
        return `${cache}-link`;
      },
    ],
  ])('finds again what it has where its folder is named %s', async (_how, named) => {
    const { origin, library, open, publish } = await setUp({ named });
    const model = await publish();
    await library.fetch(model, never);
    const moved = { ...model, source: join(origin, 'gone') };
    await expect(open().fetch(moved, never)).resolves.toEqual({ isOfFolder: false });
  });

  it('loses no version to another name for the same files', async () => {
    const { repository, library, publish } = await setUp();
    const model = await publish();
    const misnamed = { ...model, version: '7' };
    const [other] = await Promise.allSettled([library.fetch(misnamed, never), library.fetch(model, never)]);
    expect(other.status).toBe('rejected');
    await library.forget(misnamed);
    const version = repository.version('ranker', '2');
    expect((await repository.readGraph(version)).byteLength).toBeGreaterThan(1_000);
  });

  it('takes nothing away that another process reads while it mends a version', async () => {
    const { folder, repository, library, open, publish } = await setUp();
    const model = await publish();
    await library.fetch(model, never);
    const place = join(folder, model.digest.replace('sha256:', ''), 'ranker/2');
    await truncate(join(place, 'golden.json'), 10);
    let isOver = false;
    const mending = Promise.all(Array.from({ length: 8 }, () => open().fetch(model, never))).finally(() => {
      isOver = true;
    });
    const version = repository.version('ranker', '2');
    while (!isOver) await repository.readGraph(version);
    await mending;
    expect((await repository.readGolden(version)).cases.length).toBeGreaterThan(0);
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('removes what a killed process had begun to fetch a day ago, and not what another one fetches now', async () => {
    const { folder, library, publish } = await setUp();
    for (const name of ['.old', '.new']) {
      await mkdir(join(folder, name, 'ranker/2'), { recursive: true });
      await writeFile(join(folder, name, 'ranker/2/model.onnx'), 'half of it');
    }
    const longAgo = Date.now() / 1_000 - 25 * 3_600;
    await utimes(join(folder, '.old'), longAgo, longAgo);
    const model = await publish();
    await library.fetch(model, never);
    expect((await readdir(folder)).sort()).toEqual(['.new', model.digest.replace('sha256:', '')]);
  });
});
