import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { portAnswers } from './await-ready.ts';
import { findCommand } from './java.ts';
import type { Programs } from './programs.ts';
import { createServiceProcess, type Lifetime, type ServiceProcess } from './service-process.ts';

const run = promisify(execFile);
const REDIS_VERSION_MIN = [6, 2] as const;

/** Whether what `redis-server --version` prints is of at least 6.2. */
export function isRecentRedis(output: string): boolean {
  const match = /\bv=(\d+)\.(\d+)/.exec(output);
  if (match === null) return false;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > REDIS_VERSION_MIN[0] || (major === REDIS_VERSION_MIN[0] && minor >= REDIS_VERSION_MIN[1]);
}

/** redis-server on the PATH, if it is recent enough. */
export async function findRedisServer(environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  const command = await findCommand('redis-server', environment);
  if (command === undefined) return undefined;
  const output = await run(command, ['--version'], { timeout: 10_000 }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  return isRecentRedis(output) ? command : undefined;
}

/** Redis without persistence, not yet started: it comes up empty each time. */
export async function prepareRedis(options: {
  programs: Programs;
  port: number;
  folder: string;
  lifetime: Lifetime;
}): Promise<ServiceProcess> {
  const { folder, port } = options;
  await mkdir(folder, { recursive: true });
  return createServiceProcess(
    {
      name: 'redis',
      command: options.programs.redisServer,
      arguments: [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        folder,
      ],
      workingDirectory: folder,
      logFile: join(folder, 'redis.log'),
      probe: () => portAnswers(port, { ask: 'PING\r\n', answer: /^\+PONG/ }),
    },
    options.lifetime,
  );
}
