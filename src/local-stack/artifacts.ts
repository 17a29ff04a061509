import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { MillraceError } from '../core/errors.ts';
import { withFileLock } from './file-lock.ts';
import type { Java } from './java.ts';
import { formatStorage } from './kafka-storage.ts';
import { MAVEN_PROJECT } from './maven-project.ts';
import type { Programs } from './programs.ts';

const run = promisify(execFile);
const FETCH_TIMEOUT_MS = 15 * 60_000;
const CONTENTS_FILE = 'contents.json';
/** What the class archives are made of; another number has them made anew where services come to do more at their start. */
const CLASSES_EDITION = 2;

export interface Artifacts extends Omit<Programs, 'java' | 'redisServer'> {
  /** undefined where the artifact has no program for this machine. */
  redisServer: string | undefined;
}

/** MILLRACE_STACK_CACHE, else millrace's folder under XDG_CACHE_HOME or ~/.cache. */
export function cacheFolder(environment: NodeJS.ProcessEnv): string {
  const { MILLRACE_STACK_CACHE: own = '', XDG_CACHE_HOME: parent = '' } = environment;
  if (own !== '') return resolve(own);
  return join(parent === '' ? join(homedir(), '.cache') : parent, 'millrace');
}

/** The name of the Redis program for this machine in the embedded-redis artifact. */
export function redisProgram(platform: NodeJS.Platform, architecture: string): string | undefined {
  const programs: Record<string, string> = {
    'linux-x64': 'redis-server-6.2.6-v5-linux-amd64',
    'linux-arm64': 'redis-server-6.2.7-linux-arm64',
    'darwin-x64': 'redis-server-6.2.6-v5-darwin-amd64',
    'darwin-arm64': 'redis-server-6.2.6-v5-darwin-arm64',
  };
  return programs[`${platform}-${architecture}`];
}

/**
 * The services' programs from the cache folder, fetched by Maven (about 230 MB, checksums required) if they are
 * not there or not whole. Any number of processes may ask at once: one fetches, the others wait; what is seen
 * under the final name is always complete, because it is renamed to it last.
 */
export async function fetchArtifacts(options: {
  cache: string;
  java: Java;
  mavenCommand: string | undefined;
  onProgress: (line: string) => void;
}): Promise<Artifacts> {
  const folder = join(options.cache, `stack-${digest(MAVEN_PROJECT)}`);
  if (!(await isWhole(folder))) {
    await mkdir(options.cache, { recursive: true });
    await withFileLock(`${folder}.lock`, async () => {
      if (!(await isWhole(folder))) await fetchInto(folder, options);
    });
  }
  return {
    kafkaJars: join(folder, 'kafka'),
    kafkaStorage: join(folder, 'kafka-storage'),
    registryJar: join(folder, 'registry/quarkus-run.jar'),
    redisServer:
      redisProgram(process.platform, process.arch) === undefined
        ? undefined
        : join(folder, 'redis/redis-server'),
    classArchives: join(
      folder,
      `classes-${digest(`${options.java.home} ${options.java.release} ${CLASSES_EDITION}`)}`,
    ),
  };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

async function fetchInto(
  folder: string,
  options: { java: Java; mavenCommand: string | undefined; onProgress: (line: string) => void },
): Promise<void> {
  if (options.mavenCommand === undefined) {
    throw new MillraceError(
      'STACK_UNAVAILABLE',
      'Kafka, the registry and Redis have to be fetched, and Maven was not found',
      {
        advice: 'Install Maven (Debian: apt install maven; macOS: brew install maven)',
      },
    );
  }
  options.onProgress('fetching Kafka, the schema registry and Redis with Maven (about 230 MB, once)');
  const partial = await mkdtemp(`${folder}.partial-`);
  try {
    await writeFile(join(partial, 'pom.xml'), MAVEN_PROJECT);
    await runMaven(options.mavenCommand, options.java, partial);
    await keepRedisProgram(join(partial, 'redis'));
    await formatStorage(options.java, join(partial, 'kafka'), join(partial, 'kafka-storage'));
    await writeFile(join(partial, CONTENTS_FILE), JSON.stringify(await listSizes(partial)));
    await rm(folder, { recursive: true, force: true });
    await rename(partial, folder);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

async function runMaven(command: string, java: Java, folder: string): Promise<void> {
  try {
    await run(command, ['--batch-mode', '--quiet', '--strict-checksums', 'package'], {
      cwd: folder,
      env: { ...process.env, JAVA_HOME: java.home },
      timeout: FETCH_TIMEOUT_MS,
      maxBuffer: 16 * 2 ** 20,
    });
  } catch (cause) {
    const output = (cause as { stdout?: string }).stdout ?? '';
    const reason = output.split('\n').find((line) => line.startsWith('[ERROR]')) ?? String(cause);
    throw new MillraceError('STACK_UNAVAILABLE', `Maven could not fetch the services: ${reason}`, {
      advice: 'Check that Maven can reach its repository (settings.xml may name a mirror), then try again',
      cause,
    });
  }
}

async function keepRedisProgram(folder: string): Promise<void> {
  const program = redisProgram(process.platform, process.arch);
  if (program !== undefined) {
    await rename(join(folder, program), join(folder, 'redis-server'));
    await chmod(join(folder, 'redis-server'), 0o755);
  }
  const others = (await readdir(folder)).filter((name) => name !== 'redis-server');
  await Promise.all(others.map((name) => rm(join(folder, name), { recursive: true })));
}

/** Whether every file that was there when the fetch ended is there still, with the same size. */
async function isWhole(folder: string): Promise<boolean> {
  try {
    const expected = JSON.parse(await readFile(join(folder, CONTENTS_FILE), 'utf8')) as Record<
      string,
      number
    >;
    const checks = Object.entries(expected).map(
      async ([file, bytes]) => (await stat(join(folder, file))).size === bytes,
    );
    return (await Promise.all(checks)).every(Boolean);
  } catch {
    return false; // missing or unreadable: to be fetched again
  }
}

async function listSizes(folder: string): Promise<Record<string, number>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(
    files.map(async (file) => [file.slice(folder.length + 1), (await stat(file)).size] as const),
  );
  return Object.fromEntries(sizes);
}
