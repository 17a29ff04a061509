import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServiceName, startServiceProcess } from '../../src/cli/service-processes.ts';
import type { RelayOptions } from './relay.ts';

/** What is measured: running processes between ingress and scored-results. */
export interface Subject {
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;

/** `node` flags for profiling go through NODE_OPTIONS. */
export type Environment = Readonly<Record<string, string>>;

export async function startRelay(options: RelayOptions, oneProcess: boolean): Promise<Subject> {
  const parts = oneProcess ? [options.hops] : options.hops.map((hop) => [hop]);
  return together(
    await Promise.all(parts.map((hops) => startFork('relay.ts', [JSON.stringify({ ...options, hops })], {}))),
  );
}

export function startAllStages(environment: Environment): Promise<Subject> {
  return startFork('all-stages.ts', [], environment);
}

export async function startServices(
  environment: Environment,
  services: readonly ServiceName[],
): Promise<Subject> {
  const logFolder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const started = await Promise.all(
    services.map(async (service): Promise<Subject> => {
      const tell = console.error;
      const running = await startServiceProcess({ service, name: service, environment, logFolder, tell });
      return {
        pids: [running.pid],
        async stop() {
          running.kill('SIGTERM');
          await running.ended;
        },
      };
    }),
  );
  return together(started);
}

function together(subjects: readonly Subject[]): Subject {
  return {
    pids: subjects.flatMap(({ pids }) => pids),
    async stop() {
      await Promise.all(subjects.map((subject) => subject.stop()));
    },
  };
}

/** Starts a module of this folder that says `ready` when it is, and ends on any message or with this process. */
async function startFork(file: string, args: readonly string[], environment: Environment): Promise<Subject> {
  const child = fork(join(import.meta.dirname, file), args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await readiness(child, file);
  return {
    pids: [child.pid ?? -1],
    async stop() {
      const giveUp = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      child.send('stop');
      await ended;
      clearTimeout(giveUp);
    },
  };
}

function readiness(child: ChildProcess, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${name} was not ready within ${READY_MS / 1_000} s`));
    }, READY_MS);
    child.once('message', () => {
      clearTimeout(timeout);
      resolve();
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timeout);
      reject(new Error(`${name} ended with ${code ?? signal}`));
    });
  });
}
