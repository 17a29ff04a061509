import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../config/package-root.ts';
import { MillraceError } from '../core/errors.ts';
import { cacheFolder } from '../local-stack/artifacts.ts';

export type ServiceName = 'feature-extractor' | 'request-router' | 'accelerator-worker' | 'policy-controller';

export interface ServiceProcess {
  readonly name: string;
  readonly pid: number;
  /** Health and metrics. */
  readonly url: string;
  /** Resolves with the exit code, or the signal's name. */
  readonly ended: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

export interface ServiceProcessOptions {
  service: ServiceName;
  /** Names the log file, and the process in messages. */
  name: string;
  environment: Readonly<Record<string, string | undefined>>;
  logFolder: string;
}

const READY_MS = 60_000;
const LAST_LINES = 5;

/** Starts one service as a process of its own and waits until it says that it is ready. Its log goes to `<logFolder>/<name>.log`. */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  mkdirSync(options.logFolder, { recursive: true });
  const child = spawn(process.execPath, [entryOf(options.service)], {
    env: { ...smallProcess(), ...process.env, ...options.environment, MILLRACE_HTTP_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = createWriteStream(join(options.logFolder, `${options.name}.log`), { flags: 'a' });
  child.stderr.pipe(log, { end: false });
  const ended = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  const url = await readyLine(child, log, options.name, ended).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return { name: options.name, pid: child.pid ?? -1, url, ended, kill: (signal) => void child.kill(signal) };
}

/**
 * Code that was compiled once need not be again: a service starts sooner, and in 20 MB less since nothing strips its types. Its few threads
 * share one heap outside JavaScript: glibc would give each its own, and keep what each once needed.
 */
function smallProcess(): { NODE_COMPILE_CACHE: string; MALLOC_ARENA_MAX: string } {
  return { NODE_COMPILE_CACHE: join(cacheFolder(process.env), 'compiled'), MALLOC_ARENA_MAX: '1' };
}

/** The sources in a clone, `dist/` in an install. */
function entryOf(service: ServiceName): string {
  const root = packageRoot();
  const source = join(root, 'services', service, 'main.ts');
  return existsSync(source) ? source : join(root, 'dist', 'services', service, 'main.js');
}

/** Follows the process's log: `ready` carries its URL. */
function readyLine(
  child: ChildProcess,
  log: NodeJS.WritableStream,
  name: string,
  ended: Promise<number | string>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const last: string[] = [];
    const fail = (why: string): void =>
      reject(new MillraceError('STACK_UNAVAILABLE', `${name} ${why}. Its last lines:\n${last.join('\n')}`));
    const timeout = setTimeout(() => fail(`was not ready within ${READY_MS / 1_000} s`), READY_MS);
    const remember = (line: string): void => {
      last.push(line);
      if (last.length > LAST_LINES) last.shift();
    };
    if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', remember);
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on('line', (line) => {
      log.write(`${line}\n`);
      remember(line);
      const url = readyUrl(line);
      if (url === undefined) return;
      clearTimeout(timeout);
      resolve(url);
    });
    void ended.then((how) => {
      clearTimeout(timeout);
      fail(`ended with ${how}`);
    });
  });
}

function readyUrl(line: string): string | undefined {
  if (!line.includes('"ready"')) return undefined;
  const entry: unknown = JSON.parse(line);
  if (typeof entry !== 'object' || entry === null || !('msg' in entry) || entry.msg !== 'ready')
    return undefined;
  return 'url' in entry && typeof entry.url === 'string' ? entry.url : undefined;
}
