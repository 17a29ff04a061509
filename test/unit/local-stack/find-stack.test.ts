import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  findDocker,
  startDockerStack,
  startDockerStackAgain,
  stopDockerStack,
} from '../../../src/local-stack/docker-stack.ts';
import { findStack } from '../../../src/local-stack/find-stack.ts';
import { namedStack } from '../../../src/local-stack/named-stack.ts';
import { temporaryFolder, writeProgram } from './temporary-folder.ts';

const NAMED = {
  MILLRACE_KAFKA_BROKERS: 'a:9092, b:9092',
  MILLRACE_REGISTRY_URL: 'http://registry:8081',
  MILLRACE_REDIS_URL: 'redis://redis:6379',
};

describe('namedStack', () => {
  it('is what the environment names, as it is', async () => {
    const stack = namedStack(NAMED);
    expect(stack).toMatchObject({
      source: 'environment',
      kafkaBrokers: ['a:9092', 'b:9092'],
      registryUrl: 'http://registry:8081',
      redisUrl: 'redis://redis:6379',
      pids: {},
    });
    expect(stack?.environment).toEqual({ ...NAMED, MILLRACE_KAFKA_BROKERS: 'a:9092,b:9092' });
    await expect(stack?.stop()).resolves.toBeUndefined();
    await expect(stack?.killBroker()).rejects.toMatchObject({ code: 'STACK_UNAVAILABLE' });
    await expect(stack?.stopRedis()).rejects.toThrow(/not ours/);
  });

  it('is none where the environment names nothing', () => {
    expect(namedStack({ MILLRACE_KAFKA_BROKERS: '' })).toBeUndefined();
  });

  it.each(Object.keys(NAMED))('is an error without %s', (missing) => {
    expect(() => namedStack({ ...NAMED, [missing]: undefined })).toThrow(new RegExp(`but not ${missing}\\b`));
  });
});

describe('findStack', () => {
  it('prefers what the environment names', async () => {
    expect(await findStack(NAMED)).toMatchObject({ source: 'environment' });
  });

  it.each([
    ['no Docker', undefined],
    [
      'a Docker client without an engine',
      '#!/bin/sh\necho "Cannot connect to the Docker daemon" >&2\nexit 1\n',
    ],
    ['a Docker client that only knows itself', '#!/bin/sh\nexit 0\n'],
  ])('with %s and no Maven, says what is missing and every way out', async (_, docker) => {
    const folder = await temporaryFolder();
    if (docker !== undefined) await writeProgram(join(folder, 'docker'), docker);
    const environment = { PATH: folder, XDG_CACHE_HOME: folder };
    const error: unknown = await findStack(environment).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'STACK_UNAVAILABLE' });
    const { message } = error as Error;
    // Which of the two is missing depends on the machine: a JVM folder may have a Java that the PATH has not.
    expect(message).toMatch(
      /no Java of at least 21.*apt install openjdk-21|Maven was not found.*apt install maven/,
    );
    expect(message).toMatch(/start Docker/);
    expect(message).toMatch(/MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL and MILLRACE_REDIS_URL/);
  });
});

/** Notes its arguments and ports; `up` fails where asked to. */
function dockerScript(upExitCode: number): string {
  return `#!/bin/sh
echo "$KAFKA_PORT $*" >> "$(dirname "$0")/calls"
case "$*" in
  info*) echo 29.0.0 ;;
  "compose version") echo v2 ;;
  *" up "*) echo "pull access denied" >&2; exit ${upExitCode} ;;
esac
`;
}

describe('Docker', () => {
  it('is found where an engine answers and has Compose', async () => {
    const folder = await temporaryFolder();
    const docker = await writeProgram(join(folder, 'docker'), dockerScript(0));
    expect(await findDocker({ PATH: `${folder}:/usr/bin:/bin` })).toBe(docker);
  });

  it('starts what is down of a project on the ports that its environment names, and makes nothing anew', async () => {
    const folder = await temporaryFolder();
    const script = dockerScript(0).replace('$KAFKA_PORT', '$KAFKA_PORT $REGISTRY_PORT $REDIS_PORT');
    const docker = await writeProgram(join(folder, 'docker'), script);
    const options = { docker, composeFile: '/x/docker-compose.yml', environment: { PATH: '/usr/bin:/bin' } };
    await startDockerStackAgain(options, 'millrace-1', {
      MILLRACE_KAFKA_BROKERS: '127.0.0.1:20001',
      MILLRACE_REGISTRY_URL: 'http://127.0.0.1:20002/apis/ccompat/v7',
      MILLRACE_REDIS_URL: 'redis://operator:operator@127.0.0.1:20003',
    });
    expect((await readFile(join(folder, 'calls'), 'utf8')).trim()).toBe(
      '20001 20002 20003 compose --project-name millrace-1 --file /x/docker-compose.yml up --detach --wait --no-recreate kafka registry redis',
    );
  });

  it('takes its containers down again when they cannot be started', async () => {
    const folder = await temporaryFolder();
    const docker = await writeProgram(join(folder, 'docker'), dockerScript(1));
    const environment = { PATH: '/usr/bin:/bin' };
    const progress: string[] = [];
    const options = { docker, composeFile: '/x/docker-compose.yml', environment };
    const started = startDockerStack({ ...options, onProgress: (line) => progress.push(line) });
    await expect(started).rejects.toMatchObject({
      code: 'STACK_UNAVAILABLE',
      message: expect.stringMatching(/Docker could not start the services.*pull access denied/s),
    });
    const project = /as (millrace-[0-9a-f]{8})$/.exec(progress[0] ?? '')?.[1] ?? 'none';
    await stopDockerStack(options, project);
    const calls = (await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n');
    const compose = `compose --project-name ${project} --file /x/docker-compose.yml`;
    const port = /^\d+/.exec(calls[0] ?? '')?.[0] ?? 'none';
    expect(calls.map((call) => call.trim())).toEqual([
      `${port} ${compose} up --detach --wait kafka registry redis`,
      `${port} ${compose} down --volumes`,
      `${compose} down --volumes`,
    ]);
  });
});
