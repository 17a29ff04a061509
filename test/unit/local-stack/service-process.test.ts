import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { portAnswers } from '../../../src/local-stack/await-ready.ts';
import { isRunning } from '../../../src/local-stack/file-lock.ts';
import { freePort } from '../../../src/local-stack/free-port.ts';
import { createServiceProcess, type ServiceProcess } from '../../../src/local-stack/service-process.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ANSWERS = 'PONG';
const SERVICE = `
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => undefined);
  socket.on('data', () => socket.end('${ANSWERS}'));
});
server.listen(Number(process.argv[1]), '127.0.0.1');
console.log('listening');
`;
/** Ignores SIGTERM's default: ends in order, with a last word in the log. */
const POLITE = `${SERVICE}process.on('SIGTERM', () => { console.log('goodbye'); process.exit(0); });`;

interface Prepared {
  service: ServiceProcess;
  port: number;
  logFile: string;
  answers: () => Promise<boolean>;
}

async function prepare(script: string): Promise<Prepared> {
  const folder = await temporaryFolder();
  const port = await freePort();
  const logFile = join(folder, 'service.log');
  const answers = () => portAnswers(port, { ask: 'PING', answer: new RegExp(ANSWERS) });
  const command = { name: 'fake', command: process.execPath, arguments: ['-e', script, String(port)] };
  const service = createServiceProcess(
    { ...command, workingDirectory: folder, logFile, probe: answers },
    'dies-with-parent',
  );
  onTestFinished(() => service.kill());
  return { service, port, logFile, answers };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

describe('a service process', () => {
  it('is started once it answers, and comes back on the same port after each way to end it', async () => {
    const { service, answers } = await prepare(SERVICE);
    expect(service.pid).toBeUndefined();
    const pids = new Set<number | undefined>();
    for (const end of [() => service.stop(), () => service.kill(), () => service.stop()]) {
      await service.start();
      expect(await answers()).toBe(true);
      pids.add(service.pid);
      await end();
      expect(service.pid).toBeUndefined();
      expect(await answers()).toBe(false);
    }
    expect(pids.size).toBe(3);
    expect(pids).not.toContain(undefined);
  });

  it('stays the same when it is started twice, and is ended twice without harm', async () => {
    const { service } = await prepare(SERVICE);
    await service.start();
    const { pid } = service;
    await service.start();
    expect(service.pid).toBe(pid);
    await Promise.all([service.stop(), service.kill()]);
    await service.stop();
    expect(service.pid).toBeUndefined();
  });

  it('is asked to end by stop, and not by kill', async () => {
    const { service, logFile } = await prepare(POLITE);
    await service.start();
    await service.kill();
    expect(await readFile(logFile, 'utf8')).toBe('listening\n');
    await service.start();
    await service.stop();
    expect(await readFile(logFile, 'utf8')).toBe('listening\nlistening\ngoodbye\n');
  });

  it('does not answer while it is paused, and does again after', async () => {
    const { service, answers } = await prepare(SERVICE);
    await service.start();
    service.pause();
    expect(await answers()).toBe(false);
    service.resume();
    await until(answers);
  });

  it('can be stopped while it is paused', async () => {
    const { service } = await prepare(SERVICE);
    await service.start();
    service.pause();
    await service.stop();
    expect(service.pid).toBeUndefined();
  });

  it('that ends before it answers is an error with the last lines of its log', async () => {
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n');
    const { service } = await prepare(`console.error(${JSON.stringify(lines)}); process.exit(3)`);
    const error: unknown = await service.start().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'STACK_UNAVAILABLE' });
    const { message } = error as Error;
    expect(message).toMatch(/^fake ended with exit code 3 before it answered/);
    expect(message.split('\n').slice(1)).toEqual(
      [12, 13, 14, 15, 16, 17, 18, 19].map((index) => `  line ${index}`),
    );
    expect(service.pid).toBeUndefined();
  });

  it('that cannot be run is an error', async () => {
    const folder = await temporaryFolder();
    const service = createServiceProcess(
      {
        name: 'fake',
        command: process.execPath,
        arguments: [],
        workingDirectory: join(folder, 'missing'),
        logFile: join(folder, 'log'),
        probe: async () => true,
      },
      'dies-with-parent',
    );
    await expect(service.start()).rejects.toThrow(/^fake cannot be run: .*ENOENT/);
  });
});

/** A process of its own that starts the service, says its pid, and does `then`. */
async function startParent(
  lifetime: string,
  then: string,
): Promise<{ parent: number; service: number; died: Promise<unknown> }> {
  const folder = await temporaryFolder();
  const port = await freePort();
  const source = join(import.meta.dirname, '../../../src/local-stack');
  const module = (name: string) => JSON.stringify(pathToFileURL(join(source, name)).href);
  const script = `
    import { createServiceProcess } from ${module('service-process.ts')};
    import { portAnswers } from ${module('await-ready.ts')};
    const service = createServiceProcess({
      name: 'fake', command: process.execPath, arguments: ['-e', ${JSON.stringify(SERVICE)}, '${port}'],
      workingDirectory: ${JSON.stringify(folder)}, logFile: ${JSON.stringify(join(folder, 'log'))},
      probe: () => portAnswers(${port}, { ask: 'PING', answer: /^${ANSWERS}/ }),
    }, '${lifetime}');
    await service.start();
    console.log(service.pid);
    ${then}
  `;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script];
  const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const died = once(parent, 'exit');
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const service = Number(line.toString());
  onTestFinished(() => {
    for (const pid of [parent.pid, service])
      if (pid !== undefined && isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  return { parent: parent.pid ?? 0, service, died };
}

function hasRunningChild(pid: number): boolean {
  const processes = execFileSync('ps', ['-A', '-o', 'ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return processes.some((line) => {
    const [parent, state = ''] = line.trim().split(/\s+/);
    return Number(parent) === pid && !state.startsWith('Z');
  });
}

describe('the lifetime of a service process', () => {
  it.each(['dies-with-parent', 'outlives-parent'])(
    '(%s, not released) ends with its parent’s kill -9',
    async (lifetime) => {
      const { parent, service, died } = await startParent(lifetime, 'setInterval(() => undefined, 1_000);');
      expect(isRunning(service)).toBe(true);
      process.kill(parent, 'SIGKILL');
      await died;
      await until(() => !isRunning(service));
    },
  );

  it('ends with a parent that leaves without stopping it', async () => {
    const { service, died } = await startParent('dies-with-parent', 'process.exit(0);');
    await died;
    await until(() => !isRunning(service));
  });

  it('goes on beyond its parent once it is released, and lets the parent end', async () => {
    const { service, died } = await startParent('outlives-parent', 'service.release();');
    expect(await died).toEqual([0, null]);
    await until(() => !hasRunningChild(service)); // the shell that would have killed it
    expect(isRunning(service)).toBe(true);
  });
});
