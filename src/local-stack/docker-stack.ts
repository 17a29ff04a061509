import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { MillraceError } from '../core/errors.ts';
import { freePorts } from './free-port.ts';
import { findCommand } from './java.ts';
import { registryUrl } from './registry.ts';
import { type Stack, type StackAddresses, stackEnvironment } from './stack.ts';
import { warmRegistry } from './warm-registry.ts';
import { warmUp } from './warm-up.ts';

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 10_000;
/** The first time, images are pulled. */
const COMPOSE_TIMEOUT_MS = 10 * 60_000;
const SERVICES = ['kafka', 'registry', 'redis'] as const;
type DockerService = (typeof SERVICES)[number];

/** The docker command, if it reaches an engine and has Compose: a client alone does not count. */
export async function findDocker(environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  const command = await findCommand('docker', environment);
  if (command === undefined) return undefined;
  const answer = async (...args: string[]) => {
    const { stdout } = await run(command, args, { timeout: PROBE_TIMEOUT_MS, env: environment });
    return stdout.trim() !== '';
  };
  try {
    return (await answer('info', '--format', '{{.ServerVersion}}')) && (await answer('compose', 'version'))
      ? command
      : undefined;
  } catch {
    return undefined; // no engine answers: Docker is not an option here
  }
}

export interface DockerStackOptions {
  docker: string;
  composeFile: string;
  environment: NodeJS.ProcessEnv;
  onProgress: (line: string) => void;
}

/**
 * Starts Kafka, the registry and Redis of docker-compose.yml as a Compose project of its own, on free loopback ports.
 * Containers outlive this process: `stop` removes them with their data.
 */
export async function startDockerStack(options: DockerStackOptions): Promise<Stack> {
  const project = `millrace-${randomBytes(4).toString('hex')}`;
  const [kafkaPort = 0, registryPort = 0, redisPort = 0] = await freePorts(3);
  const ports = { KAFKA_PORT: `${kafkaPort}`, REGISTRY_PORT: `${registryPort}`, REDIS_PORT: `${redisPort}` };
  const compose = composeCommand(options, project, ports);
  const addresses = {
    kafkaBrokers: [`127.0.0.1:${kafkaPort}`],
    registryUrl: registryUrl(registryPort),
    redisUrl: `redis://operator:operator@127.0.0.1:${redisPort}`, // a user of deploy/redis/redis.conf
  };
  options.onProgress(`starting ${SERVICES.join(', ')} with Docker as ${project}`);
  try {
    await compose('up', '--detach', '--wait', ...SERVICES);
    await Promise.all([warmUp(addresses.kafkaBrokers), warmRegistry(addresses.registryUrl)]);
  } catch (cause) {
    await compose('down', '--volumes');
    throw new MillraceError('STACK_UNAVAILABLE', `Docker could not start the services: ${String(cause)}`, {
      cause,
    });
  }
  return composeStack(addresses, project, compose);
}

/** Removes the containers and data of a project that an earlier process started. */
export async function stopDockerStack(
  options: Omit<DockerStackOptions, 'onProgress'>,
  project: string,
): Promise<void> {
  await composeCommand(options, project, {})('down', '--volumes');
}

/** Starts the containers of a project that do not run, with their data where they are still there; the others are left as they are. */
export async function startDockerStackAgain(
  options: Omit<DockerStackOptions, 'onProgress'>,
  project: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const portIn = (variable: string): string =>
    /:(\d+)(?:\/|$)/.exec((environment[variable] ?? '').replace(/^\w+:\/\/([^@]*@)?/, ''))?.[1] ?? '';
  const ports = {
    KAFKA_PORT: portIn('MILLRACE_KAFKA_BROKERS'),
    REGISTRY_PORT: portIn('MILLRACE_REGISTRY_URL'),
    REDIS_PORT: portIn('MILLRACE_REDIS_URL'),
  };
  const compose = composeCommand(options, project, ports);
  await compose('up', '--detach', '--wait', '--no-recreate', ...SERVICES);
}

type Compose = (...args: string[]) => Promise<void>;

function composeCommand(
  options: Omit<DockerStackOptions, 'onProgress'>,
  project: string,
  ports: Record<string, string>,
): Compose {
  const { docker, composeFile, environment } = options;
  return async (...args) => {
    await run(docker, ['compose', '--project-name', project, '--file', composeFile, ...args], {
      env: { ...environment, ...ports },
      timeout: COMPOSE_TIMEOUT_MS,
      maxBuffer: 2 ** 24,
    });
  };
}

function composeStack(addresses: StackAddresses, project: string, compose: Compose): Stack {
  const start = (service: DockerService) => compose('up', '--detach', '--wait', '--no-recreate', service);
  const stop = (service: DockerService) => compose('stop', service);
  const onlyBroker = async (index: number, action: () => Promise<void>) => {
    if (index === 0) return action();
    throw new MillraceError('STACK_UNAVAILABLE', 'there is no such broker', { value: index, allowed: '0' });
  };
  return {
    source: 'docker',
    ...addresses,
    pids: {},
    launches: {},
    dir: undefined,
    project,
    environment: stackEnvironment(addresses),
    stop: () => compose('down', '--volumes'),
    restartBroker: (index = 0) =>
      onlyBroker(index, async () => {
        await stop('kafka');
        await start('kafka');
      }),
    killBroker: (index = 0) => onlyBroker(index, () => compose('kill', 'kafka')),
    startBroker: (index = 0) => onlyBroker(index, () => start('kafka')),
    pauseBroker: (index = 0) => onlyBroker(index, () => compose('pause', 'kafka')),
    resumeBroker: (index = 0) => onlyBroker(index, () => compose('unpause', 'kafka')),
    stopRegistry: () => stop('registry'),
    startRegistry: () => start('registry'),
    pauseRegistry: () => compose('pause', 'registry'),
    resumeRegistry: () => compose('unpause', 'registry'),
    stopRedis: () => stop('redis'),
    startRedis: () => start('redis'),
    pauseRedis: () => compose('pause', 'redis'),
    resumeRedis: () => compose('unpause', 'redis'),
  };
}
