import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../config/package-root.ts';
import { MillraceError } from '../core/errors.ts';
import { cacheFolder } from '../local-stack/artifacts.ts';
import { ServiceLog } from './service-log.ts';

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
  /** A line for whoever started it, such as that its log cannot be written. */
  tell(line: string): void;
  /** At once, long before it is ready: how to end it, whatever becomes of whoever waits. */
  onSpawned?(kill: ServiceProcess['kill']): void;
}

const READY_MS = 60_000;
const LAST_LINES = 5;

/**
 * Starts one service as a process of its own and waits until it says that it is ready. Its log goes to `<logFolder>/<name>.log`.
 * @throws MillraceError INVALID_CONFIG where no log can be kept there, STACK_UNAVAILABLE where it does not become ready
 */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const { name, logFolder, tell } = options;
  const log = new ServiceLog({ name, path: join(logFolder, `${name}.log`), tell });
  const child = spawn(process.execPath, [entryOf(options.service)], {
    env: { ...smallProcess(), ...process.env, ...options.environment, MILLRACE_HTTP_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal);
  options.onSpawned?.(kill);
  child.stderr.on('data', (text: Buffer) => log.write(text));
  // After its last words.
  child.once('close', () => log.close());
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    child.once('error', (error) => resolve(error.message));
  });
  const url = await readyLine(child, log, name, ended).catch((error: unknown) => {
    kill('SIGKILL');
    throw error;
  });
  return { name, pid: child.pid ?? -1, url, ended, kill };
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
  log: ServiceLog,
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
    // Not at its exit: its last lines may be on their way still.
    child.once('close', () => {
      clearTimeout(timeout);
      void ended.then((how) => fail(`ended with ${how}`));
    });
  });
}

function readyUrl(line: string): string | undefined {
  if (!line.includes('"ready"')) return undefined;
  const entry = entryIn(line);
  if (typeof entry !== 'object' || entry === null || !('msg' in entry) || entry.msg !== 'ready')
    return undefined;
  return 'url' in entry && typeof entry.url === 'string' ? entry.url : undefined;
}

/** Not every line is one of the log's: a library may print what it likes. */
function entryIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
