import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { MillraceError } from '../core/errors.ts';
import { awaitReady } from './await-ready.ts';

const READY_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 50;
const LOG_LINES_QUOTED = 8;

/**
 * The service replaces the shell (same pid). Left beside it, a waiting shell holds the end of a pipe whose other end
 * only our process has: end of file means that we are gone, however we died, and the service is killed. A line on
 * the pipe unties the two: the service has ended by itself (its pid may soon be another's), or may outlive us.
 */
const TIED_TO_PARENT = '( read -r _ <&3 || kill -KILL $$ ) </dev/null >/dev/null 2>&1 & exec "$@" 3<&-';

/** With `outlives-parent` the service still dies with us until it is released. */
export type Lifetime = 'dies-with-parent' | 'outlives-parent';

export interface ServiceCommand {
  name: string;
  command: string;
  arguments: readonly string[];
  workingDirectory: string;
  logFile: string;
  /** True once the service answers. */
  probe: () => Promise<boolean>;
}

/** How a service was started: enough to start it again on the same port and folder. */
export type ServiceLaunch = Omit<ServiceCommand, 'name' | 'probe'>;

/** One service of the stack as a child process that can be ended and started again with the same command. */
export interface ServiceProcess {
  readonly name: string;
  readonly launch: ServiceLaunch;
  /** undefined while it is down. */
  readonly pid: number | undefined;
  /** Starts it and waits until its probe answers. Rejects with STACK_UNAVAILABLE and the log's last lines. */
  start(): Promise<void>;
  /** SIGTERM, and SIGKILL after `timeoutMs` (20 s). Resolves when it is gone; nothing happens if it is down. */
  stop(timeoutMs?: number): Promise<void>;
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Stops its clock (SIGSTOP): connections stay open and nobody answers. */
  pause(): void;
  /** Undoes `pause`. */
  resume(): void;
  /** Lets our process end while it runs on. */
  release(): void;
}

export function createServiceProcess(service: ServiceCommand, lifetime: Lifetime): ServiceProcess {
  const { name, probe: _, ...launch } = service;
  let spawned: SpawnedService | undefined; // until its exit was seen

  async function end(signal: 'SIGTERM' | 'SIGKILL', timeoutMs = STOP_TIMEOUT_MS): Promise<void> {
    const child = spawned?.child;
    if (child === undefined) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT'); // a paused process sees no SIGTERM
    const lastResort = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    await exited;
    clearTimeout(lastResort);
  }

  return {
    name,
    launch,
    get pid() {
      return spawned?.child.pid;
    },
    async start() {
      if (spawned !== undefined) return;
      const started = spawnService(service, lifetime);
      const { child } = started;
      if (child.pid === undefined) throw await failureOf(child, service);
      spawned = started;
      child.once('exit', () => {
        spawned = undefined;
      });
      try {
        await awaitAnswer(service, child);
      } catch (error) {
        await end('SIGKILL');
        throw error;
      }
    },
    stop: (timeoutMs) => end('SIGTERM', timeoutMs),
    kill: () => end('SIGKILL'),
    pause: () => void spawned?.child.kill('SIGSTOP'),
    resume: () => void spawned?.child.kill('SIGCONT'),
    release: () => {
      spawned?.untie();
      spawned?.child.unref();
    },
  };
}

interface SpawnedService {
  child: ChildProcess;
  /** From here on it may outlive us. */
  untie: () => void;
}

async function failureOf(child: ChildProcess, service: ServiceCommand): Promise<MillraceError> {
  const [cause] = await once(child, 'error');
  return new MillraceError('STACK_UNAVAILABLE', `${service.name} cannot be run: ${String(cause)}`, { cause });
}

function spawnService(service: ServiceCommand, lifetime: Lifetime): SpawnedService {
  const log = openSync(service.logFile, 'a');
  try {
    const child = spawn('/bin/sh', ['-c', TIED_TO_PARENT, 'sh', service.command, ...service.arguments], {
      cwd: service.workingDirectory,
      env: inheritedEnvironment(),
      stdio: ['ignore', log, log, 'pipe'],
      // A group of its own: the terminal's Ctrl-C does not reach what is to outlive us.
      detached: lifetime === 'outlives-parent',
    });
    const tie = child.stdio[3] as Socket; // Node makes the pipes of `stdio` sockets
    tie.on('error', () => undefined); // the waiting shell may be gone before us: nothing is left to untie
    tie.unref();
    const untie = () => void tie.end('untied\n');
    child.once('exit', untie);
    return { child, untie };
  } finally {
    closeSync(log);
  }
}

/** Only what a service needs: settings such as JAVA_TOOL_OPTIONS or QUARKUS_… stay out. */
function inheritedEnvironment(): NodeJS.ProcessEnv {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LANG'];
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

async function awaitAnswer(service: ServiceCommand, child: ChildProcess): Promise<void> {
  const outcome = await awaitReady({
    probe: service.probe,
    ended: () => hasEnded(child),
    intervalMs: POLL_INTERVAL_MS,
    timeoutMs: READY_TIMEOUT_MS,
  });
  if (outcome === 'ready') return;
  const why =
    outcome === 'ended'
      ? `ended with ${child.signalCode ?? `exit code ${child.exitCode}`} before it answered`
      : `did not answer within ${READY_TIMEOUT_MS / 1_000} s`;
  throw new MillraceError('STACK_UNAVAILABLE', `${service.name} ${why}; ${await lastLines(service.logFile)}`);
}

async function lastLines(logFile: string): Promise<string> {
  const lines = (await readFile(logFile, 'utf8')).trimEnd().split('\n').slice(-LOG_LINES_QUOTED);
  return `the last lines of ${logFile}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
