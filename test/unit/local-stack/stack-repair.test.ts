import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { readStackState, type StackState, writeStackState } from '../../../src/cli/stack-state.ts';
import { stackUp, type UpOptions } from '../../../src/cli/stack-up.ts';
import { freePort } from '../../../src/local-stack/free-port.ts';
import { commandLineOf, endProcess, isAlive } from '../../../src/local-stack/process-identity.ts';
import { answering, redisProgram, silent } from './stack-fixture.ts';
import { startProcess } from './stack-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

let folder = '';
let file = '';
let told: string[] = [];

beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'stack.json');
  told = [];
});

afterEach(() => vi.unstubAllEnvs());

/** With no Docker and no Java at hand: what would start a new stack fails, and says so. */
function up(options: Partial<UpOptions> = {}): Promise<StackState> {
  return stackUp(file, {
    brokers: 1,
    environment: { PATH: folder, XDG_CACHE_HOME: folder, ...options.environment },
    report: (line) => void told.push(line),
  });
}

const NEW_STACK = /no Java of at least 21|Maven was not found/;

async function launch(args: string[], command: string = process.execPath) {
  const workingDirectory = join(folder, 'data', 'redis');
  await mkdir(workingDirectory, { recursive: true });
  return { command, arguments: args, workingDirectory, logFile: join(workingDirectory, 'redis.log') };
}

/** A stack whose Kafka and registry answer, and whose Redis was killed. */
async function withoutRedis(): Promise<StackState & { redisPort: number }> {
  const redisPort = await freePort();
  const environment = { ...(await answering()), MILLRACE_REDIS_URL: `redis://127.0.0.1:${redisPort}` };
  const kafka = await startProcess();
  return {
    environment,
    dir: join(folder, 'data'),
    processes: [
      { name: 'kafka-1', pid: kafka.pid, commandLine: kafka.commandLine },
      { name: 'redis', pid: 2 ** 22 - 1, commandLine: 'gone', launch: await launch(redisProgram(redisPort)) },
    ],
    redisPort,
  };
}

describe('millrace stack up on a stack that is half alive', () => {
  it('starts what is dead again on its port, and leaves alone what answers', async () => {
    const { redisPort: _, ...state } = await withoutRedis();
    await writeStackState(file, state);
    const repaired = await up();
    const [kafka, redis] = repaired.processes;
    onTestFinished(async () => void (redis && (await endProcess(redis))));
    expect(repaired.environment).toEqual(state.environment);
    expect(kafka).toEqual(state.processes[0]);
    expect(redis?.pid).not.toBe(state.processes[1]?.pid);
    expect(redis && (await isAlive(redis))).toBe(true);
    expect(await readStackState(file)).toEqual(repaired);
    expect(told).toEqual(['starting again what is down of the stack: redis', 'redis answers again']);
    expect(await up()).toEqual(repaired);
  });

  it('names what cannot be started again, and ends nothing', async () => {
    const { redisPort: _, ...state } = await withoutRedis();
    const [kafka, redis] = state.processes;
    if (kafka === undefined || redis === undefined) throw new Error('the stack has two processes');
    await writeStackState(file, {
      ...state,
      processes: [kafka, { ...redis, launch: await launch([], '/bin/false') }],
    });
    await expect(up()).rejects.toThrow(
      /redis cannot be started again: redis ended with exit code 1 .*stack down.*fresh/s,
    );
    await writeStackState(file, { ...state, processes: [kafka, { ...redis, launch: undefined }] });
    await expect(up()).rejects.toThrow(/redis cannot be started again: how it was started is not recorded/);
    expect(await isAlive(kafka)).toBe(true);
    expect((await readStackState(file))?.processes).toHaveLength(2);
  });

  it('does not take the port of one that runs and is silent', async () => {
    const { redisPort: _, ...state } = await withoutRedis();
    const { pid } = await startProcess();
    const commandLine = (await commandLineOf(pid)) ?? '';
    const processes = state.processes.map((each) =>
      each.name === 'redis' ? { ...each, pid, commandLine } : each,
    );
    await writeStackState(file, { ...state, processes });
    await expect(up()).rejects.toThrow(new RegExp(`redis cannot be started again: it runs \\(pid ${pid}\\)`));
    expect(await isAlive({ name: 'redis', pid, commandLine })).toBe(true);
  });

  it('starts a new one where nothing is left, neither a process nor data', async () => {
    const gone = { name: 'redis', pid: 2 ** 22 - 1, commandLine: 'gone' };
    await writeStackState(file, {
      environment: await silent(),
      processes: [gone],
      dir: join(folder, 'no such folder'),
    });
    await expect(up()).rejects.toThrow(NEW_STACK);
    expect(told[0]).toMatch(/nothing is left of the stack/);
    expect(await readStackState(file)).toBeUndefined();
  });
});

describe('millrace stack up where the environment names a stack', () => {
  it('starts a new one where that is of this machine, and down', async () => {
    await expect(up({ environment: await silent() })).rejects.toThrow(NEW_STACK);
    expect(told[0]).toMatch(
      /^the environment names a stack of this machine that is down \(127\.0\.0\.1:\d+, /,
    );
  });

  it('uses the one that is up where that is another, and down', async () => {
    const state = { environment: await answering(), processes: [] };
    await writeStackState(file, state);
    expect(await up({ environment: await silent() })).toEqual(state);
  });

  it('repairs the one that is up where that is the same', async () => {
    const { redisPort: _, ...state } = await withoutRedis();
    await writeStackState(file, state);
    const repaired = await up({ environment: state.environment });
    const redis = repaired.processes[1];
    onTestFinished(async () => void (redis && (await endProcess(redis))));
    expect(told).toContain('redis answers again');
  });

  it('refuses one of another machine that does not answer, and says what to unset', async () => {
    const environment = {
      ...(await silent()),
      MILLRACE_REDIS_URL: 'redis://somebody:secret@redis.invalid:6379',
    };
    const error: unknown = await up({ environment }).catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/redis at redis:\/\/redis\.invalid:6379/);
    expect(String(error)).toMatch(/unset MILLRACE_KAFKA_BROKERS MILLRACE_REGISTRY_URL MILLRACE_REDIS_URL/);
    expect(String(error)).not.toContain('secret');
  });

  it('refuses one of which a part answers, and touches nothing of the stack that is up', async () => {
    const kafka = await startProcess();
    const process = { name: 'kafka-1', pid: kafka.pid, commandLine: kafka.commandLine };
    await writeStackState(file, { environment: await silent(), processes: [process], dir: folder });
    const environment = {
      ...(await answering()),
      MILLRACE_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    };
    await expect(up({ environment })).rejects.toThrow(
      /do not answer: redis at redis:\/\/127\.0\.0\.1:\d+ \(MILLRACE_REDIS_URL\)/,
    );
    expect(await isAlive(process)).toBe(true);
    expect(await readStackState(file)).toBeDefined();
  });
});
