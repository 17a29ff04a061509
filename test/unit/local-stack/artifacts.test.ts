import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cacheFolder, fetchArtifacts, redisProgram } from '../../../src/local-stack/artifacts.ts';
import { temporaryFolder, writeProgram } from './temporary-folder.ts';

/** Lays out what Maven would, and notes each run. */
const MAVEN = `#!/bin/sh
echo run >> "$(dirname "$0")/runs"
test -f pom.xml || exit 2
mkdir -p kafka registry redis/META-INF
echo jar > kafka/kafka.jar
echo jar > registry/quarkus-run.jar
for name in 6.2.6-v5-linux-amd64 6.2.7-linux-arm64 6.2.6-v5-darwin-amd64 6.2.6-v5-darwin-arm64; do echo "$name" > "redis/redis-server-$name"; done
`;
/** Formats the storage that the properties file (its last argument) names. */
const JAVA = `#!/bin/sh
for last; do :; done
storage=$(sed -n 's/^log.dirs=//p' "$last")
mkdir -p "$storage/__cluster_metadata-0"
echo formatted > "$storage/__cluster_metadata-0/checkpoint"
`;

interface Prepared {
  cache: string;
  fetch: (mavenCommand?: string | undefined) => ReturnType<typeof fetchArtifacts>;
  maven: string;
  runs: () => Promise<number>;
  progress: string[];
}

async function prepare(mavenScript = MAVEN): Promise<Prepared> {
  const folder = await temporaryFolder();
  const cache = join(folder, 'cache');
  const maven = await writeProgram(join(folder, 'bin/mvn'), mavenScript);
  const command = await writeProgram(join(folder, 'bin/java'), JAVA);
  const progress: string[] = [];
  const java = { home: folder, command, release: '25.0.3' };
  return {
    cache,
    maven,
    progress,
    fetch: (mavenCommand) =>
      fetchArtifacts({ cache, java, mavenCommand, onProgress: (line) => progress.push(line) }),
    runs: async () =>
      (await readFile(join(folder, 'bin/runs'), 'utf8').catch(() => '')).split('\n').length - 1,
  };
}

describe('cacheFolder', () => {
  it.each([
    [{ XDG_CACHE_HOME: '/caches' }, '/caches/millrace'],
    [{ XDG_CACHE_HOME: '/caches', MILLRACE_STACK_CACHE: '/own' }, '/own'],
    [{ XDG_CACHE_HOME: '/caches', MILLRACE_STACK_CACHE: '' }, '/caches/millrace'],
    [{ XDG_CACHE_HOME: '' }, join(homedir(), '.cache/millrace')],
    [{}, join(homedir(), '.cache/millrace')],
  ])('with %o is %s', (environment, expected) => {
    expect(cacheFolder(environment)).toBe(expected);
  });
});

describe('redisProgram', () => {
  it('knows the machines that the artifact has a program for', () => {
    expect(redisProgram('linux', 'x64')).toBe('redis-server-6.2.6-v5-linux-amd64');
    expect(redisProgram('darwin', 'arm64')).toBe('redis-server-6.2.6-v5-darwin-arm64');
    expect(redisProgram('linux', 'riscv64')).toBeUndefined();
  });
});

describe('fetchArtifacts', () => {
  it('fetches once, and keeps the program for this machine only', async () => {
    const { cache, fetch, maven, runs, progress } = await prepare();
    const artifacts = await fetch(maven);
    expect(await readFile(artifacts.registryJar, 'utf8')).toBe('jar\n');
    expect(await readdir(artifacts.kafkaJars)).toEqual(['kafka.jar']);
    expect(await readFile(join(artifacts.kafkaStorage, '__cluster_metadata-0/checkpoint'), 'utf8')).toBe(
      'formatted\n',
    );
    const program = redisProgram(process.platform, process.arch);
    if (program === undefined) expect(artifacts.redisServer).toBeUndefined();
    else
      expect(await readFile(artifacts.redisServer ?? '', 'utf8')).toBe(
        `${program.slice('redis-server-'.length)}\n`,
      );
    expect(progress).toEqual([expect.stringMatching(/^fetching Kafka/)]);
    expect(await fetch(undefined)).toEqual(artifacts);
    expect(await runs()).toBe(1);
    expect(await readdir(cache)).toHaveLength(1);
  });

  it('is run by one of many that ask at once', async () => {
    const { cache, fetch, maven, runs } = await prepare();
    const all = await Promise.all(Array.from({ length: 4 }, () => fetch(maven)));
    expect(new Set(all.map(({ registryJar }) => registryJar)).size).toBe(1);
    expect(await runs()).toBe(1);
    expect(await readdir(cache)).toHaveLength(1);
  });

  it.each([
    ['a file that is gone', (path: string) => rm(path)],
    ['a file of another size', (path: string) => appendFile(path, 'more')],
  ])('fetches again after %s', async (_, damage) => {
    const { fetch, maven, runs } = await prepare();
    const { registryJar } = await fetch(maven);
    await damage(registryJar);
    await fetch(maven);
    expect(await readFile(registryJar, 'utf8')).toBe('jar\n');
    expect(await runs()).toBe(2);
  });

  it('replaces a folder that was never finished', async () => {
    const { cache, fetch, maven } = await prepare();
    const { registryJar } = await fetch(maven);
    const folder = join(cache, (await readdir(cache))[0] ?? '');
    await rm(folder, { recursive: true });
    await mkdir(folder);
    await writeFile(join(folder, 'contents.json'), '{"registry/quar');
    await fetch(maven);
    expect(await readFile(registryJar, 'utf8')).toBe('jar\n');
  });

  it('says what Maven said, and leaves nothing behind that looks whole', async () => {
    const { cache, fetch, maven } = await prepare(
      '#!/bin/sh\necho "[INFO] x"\necho "[ERROR] Could not transfer artifact a:b:1"\nexit 1\n',
    );
    await expect(fetch(maven)).rejects.toMatchObject({
      code: 'STACK_UNAVAILABLE',
      message: expect.stringMatching(/\[ERROR\] Could not transfer artifact a:b:1.*settings\.xml/),
    });
    expect(await readdir(cache)).toEqual([]);
  });

  it('says how to get Maven where there is none', async () => {
    const { fetch } = await prepare();
    await expect(fetch(undefined)).rejects.toMatchObject({
      code: 'STACK_UNAVAILABLE',
      message: expect.stringMatching(/Maven was not found.*apt install maven/),
    });
  });
});
