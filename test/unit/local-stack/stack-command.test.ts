import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stackCommand } from '../../../src/cli/stack.ts';
import { readStackState, type StackState, writeStackState } from '../../../src/cli/stack-state.ts';
import { isRunning } from '../../../src/local-stack/file-lock.ts';
import { freePort } from '../../../src/local-stack/free-port.ts';
import { answering } from './stack-fixture.ts';
import { startProcess } from './stack-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

let file = '';
let printed: string[] = [];
let told: string[] = [];

beforeEach(async () => {
  for (const name of VARIABLES) vi.stubEnv(name, undefined);
  const cache = await temporaryFolder();
  vi.stubEnv('XDG_CACHE_HOME', cache);
  file = join(cache, 'millrace/run/stack.json');
  printed = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
  told = [];
  vi.spyOn(console, 'error').mockImplementation((line: string) => void told.push(line));
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

async function run(...args: string[]): Promise<string> {
  printed = [];
  await stackCommand().parseAsync(args, { from: 'user' });
  return printed.join('\n');
}

const VARIABLES = ['MILLRACE_KAFKA_BROKERS', 'MILLRACE_REGISTRY_URL', 'MILLRACE_REDIS_URL'] as const;

async function write(state: Partial<StackState>): Promise<void> {
  await writeStackState(file, { environment: {}, processes: [], ...state });
}

describe('millrace stack status', () => {
  it('says that none is up, with exit code 1', async () => {
    expect(await run('status')).toBe('no stack is up');
    expect(process.exitCode).toBe(1);
  });

  it('says that all services answer', async () => {
    const environment = await answering(3);
    await write({ environment });
    expect((await run('status')).match(/answers/g)).toHaveLength(5);
    expect(process.exitCode).toBeUndefined();
    expect(JSON.parse(await run('status', '--json'))).toMatchObject({ up: true, environment });
  });

  it('counts a Redis that wants a password as one that answers, and one that loads its data not', async () => {
    await write({ environment: await answering(1, '-NOAUTH Authentication required.') });
    expect(JSON.parse(await run('status', '--json'))).toMatchObject({ up: true });
    await write({ environment: await answering(1, '-LOADING Redis is loading the dataset in memory') });
    expect(JSON.parse(await run('status', '--json'))).toMatchObject({ up: false });
  });

  it('says which one does not, with exit code 1', async () => {
    const environment = {
      ...(await answering()),
      MILLRACE_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    };
    await write({ environment });
    expect(await run('status')).toMatch(/^kafka\s+answers.*\nregistry\s+answers.*\nredis\s+silent/);
    expect(process.exitCode).toBe(1);
    expect(JSON.parse(await run('status', '--json'))).toMatchObject({ up: false });
  });
});

describe('millrace stack up', () => {
  it('prints the environment of the stack that is up, and starts no other', async () => {
    const environment = await answering();
    await write({ environment });
    expect(await run('up')).toBe(
      Object.entries(environment)
        .map(([name, value]) => `export ${name}='${value}'`)
        .join('\n'),
    );
    expect(JSON.parse(await run('up', '--json'))).toMatchObject({ environment });
  });

  it('refuses another number of brokers than is up', async () => {
    await write({ environment: await answering(1) });
    await expect(run('up', '--brokers', '3')).rejects.toThrow(/got 1; allowed: 3.*stack down/);
  });

  it('uses what the environment names, and remembers nothing', async () => {
    const environment = await answering();
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    expect(JSON.parse(await run('up', '--json'))).toMatchObject({ environment });
    expect(await readStackState(file)).toBeUndefined();
  });
});

describe('millrace stack down', () => {
  it('ends the processes of the stack and removes its data', async () => {
    const { pid, exited, commandLine } = await startProcess();
    const dir = join(await temporaryFolder(), 'data');
    await mkdir(join(dir, 'kafka-1'), { recursive: true });
    await write({ processes: [{ name: 'kafka-1', pid, commandLine }], dir });
    expect(await run('down')).toBe(`unset ${VARIABLES.join(' ')}`);
    expect(told).toEqual(['ending kafka-1', 'ended']);
    expect(await exited).toEqual([null, 'SIGTERM']);
    await expect(access(dir)).rejects.toThrow(/ENOENT/);
    expect(await run('down')).toBe('');
    expect(told).toEqual(['ending kafka-1', 'ended', 'no stack is up']);
  });

  it('leaves a process alone that only has the pid of one of the stack', async () => {
    const { pid } = await startProcess();
    await write({ processes: [{ name: 'kafka-1', pid, commandLine: 'java kafka.Kafka' }] });
    expect(JSON.parse(await run('down', '--json'))).toMatchObject({ ended: true });
    expect(isRunning(pid)).toBe(true);
    expect(await readStackState(file)).toBeUndefined();
  });

  it('ends nothing by a state that cannot be read', async () => {
    await write({});
    await writeFile(file, '{"processes": [{"pid": 1');
    expect(JSON.parse(await run('down', '--json'))).toEqual({ ended: false, unset: [] });
    await writeFile(file, '{"environment": {}, "processes": [{"name": "x", "pid": -1, "commandLine": "x"}]}');
    expect(JSON.parse(await run('down', '--json'))).toEqual({ ended: false, unset: [] });
  });

  it('says which addresses a shell may forget, and none of somebody else’s', async () => {
    const environment = await answering();
    await write({ environment });
    vi.stubEnv('MILLRACE_KAFKA_BROKERS', environment['MILLRACE_KAFKA_BROKERS']);
    vi.stubEnv('MILLRACE_REDIS_URL', 'redis://redis.example:6379');
    expect(await run('down')).toBe('unset MILLRACE_KAFKA_BROKERS MILLRACE_REGISTRY_URL');
  });
});
