import { execFile } from 'node:child_process';
import { access, constants, readdir, readFile, realpath } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const JAVA_VERSION_MIN = 21;
const JVM_FOLDER = '/usr/lib/jvm';

export interface Java {
  /** JAVA_HOME of this Java. */
  home: string;
  command: string;
  /** Such as `25.0.3`. */
  release: string;
}

/** The feature release: 25 for `25.0.3`, 21 for `21-ea`, 8 for `1.8.0_402`. */
export function featureRelease(release: string): number {
  return Number(/^(?:1\.)?(\d+)/.exec(release)?.[1] ?? 0);
}

/** Home and release in what `java -XshowSettings:properties -version` prints. */
export function parseJavaSettings(output: string): { home: string; release: string } | undefined {
  const home = /^\s*java\.home = (.+)$/m.exec(output)?.[1];
  const release = /^\s*java\.version = (.+)$/m.exec(output)?.[1];
  return home === undefined || release === undefined ? undefined : { home, release };
}

/** The first Java of at least 21 in: JAVA_HOME, the PATH, /usr/lib/jvm/* (newest first). */
export async function findJava(
  environment: NodeJS.ProcessEnv,
  jvmFolder = JVM_FOLDER,
): Promise<Java | undefined> {
  const { JAVA_HOME } = environment;
  const onPath = await findCommand('java', environment);
  const named = JAVA_HOME === undefined || JAVA_HOME === '' ? undefined : join(JAVA_HOME, 'bin/java');
  for (const command of [named, onPath]) {
    const java = command === undefined ? undefined : await inspectJava(command);
    if (java !== undefined && isRecent(java)) return java;
  }
  const names = await readdir(jvmFolder).catch(() => []);
  const installed = await Promise.all(names.map((name) => inspectJava(join(jvmFolder, name, 'bin/java'))));
  return installed
    .filter((java) => java !== undefined)
    .filter(isRecent)
    .toSorted((a, b) => b.release.localeCompare(a.release, 'en', { numeric: true }))[0];
}

/** The full path of a command on the PATH. */
export async function findCommand(name: string, environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { PATH = '' } = environment;
  for (const folder of PATH.split(delimiter).filter((part) => part !== '')) {
    const path = join(folder, name);
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

function isRecent(java: Java): boolean {
  return featureRelease(java.release) >= JAVA_VERSION_MIN;
}

/** Reads the `release` file that comes with a Java; runs it only where there is none (macOS' /usr/bin/java). */
async function inspectJava(command: string): Promise<Java | undefined> {
  if (!(await isExecutable(command))) return undefined;
  const path = await realpath(command);
  const home = dirname(dirname(path));
  const described = await readFile(join(home, 'release'), 'utf8').catch(() => '');
  const release = /^JAVA_VERSION="(.+)"$/m.exec(described)?.[1];
  if (release !== undefined) return { home, command: path, release };
  const settings = await run(path, ['-XshowSettings:properties', '-version'], { timeout: 20_000 }).then(
    ({ stdout, stderr }) => parseJavaSettings(stdout + stderr),
    () => undefined, // it does not run: not a Java for us
  );
  return settings === undefined ? undefined : { command: path, ...settings };
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
