import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { ensureClassArchives } from './class-archives.ts';
import { isRunning } from './file-lock.ts';
import { findPrograms } from './programs.ts';
import type { Lifetime, ServiceProcess } from './service-process.ts';
import { choosePorts, prepareServices, type Services, startServices } from './services.ts';
import { type Stack, stackEnvironment } from './stack.ts';

const FOLDER_PREFIX = 'millrace-stack-';

export interface StartStackOptions {
  /** 1 by default. */
  brokers?: 1 | 3;
  /** Folder for data and logs, kept by `stop`; by default a new temporary one, which `stop` removes. */
  dir?: string;
  /** `dies-with-parent` by default: the services end with this process, however it ends. */
  lifetime?: Lifetime;
  environment?: NodeJS.ProcessEnv;
  onProgress?: (line: string) => void;
}

/**
 * Starts a real Kafka, schema registry and Redis on free loopback ports, and resolves when clients can use them.
 * Needs Java 21 and, the first time, Maven; otherwise rejects with STACK_UNAVAILABLE, which says what to install.
 */
export async function startStack(options: StartStackOptions = {}): Promise<Stack> {
  const { environment = process.env, brokers = 1, lifetime = 'dies-with-parent' } = options;
  const onProgress = options.onProgress ?? (() => undefined);
  const programs = await findPrograms(environment, onProgress);
  await ensureClassArchives(programs, onProgress);
  await removeAbandonedFolders();
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`)));
  await mkdir(dir, { recursive: true });
  const ports = await choosePorts(brokers);
  const services = await prepareServices({ programs, archives: 'use', dir, ports, lifetime });
  const removeData = async () => {
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  };
  onProgress(`starting ${services.all.map((service) => service.name).join(', ')} in ${dir}`);
  try {
    await startServices(services, onProgress);
  } catch (error) {
    await removeData();
    throw error;
  }
  if (lifetime === 'outlives-parent') for (const service of services.all) service.release();
  return composeStack(services, dir, async () => {
    const keepsData = options.dir !== undefined;
    await Promise.all(services.all.map((service) => (keepsData ? service.stop() : service.kill())));
    await removeData();
  });
}

function composeStack(services: Services, dir: string, stop: () => Promise<void>): Stack {
  const { addresses, registry, redis } = services;
  const broker = (index: number) => chooseBroker(services.brokers, index);
  return {
    source: 'processes',
    ...addresses,
    get pids() {
      return Object.fromEntries(
        services.all.flatMap(({ name, pid }) => (pid === undefined ? [] : [[name, pid]])),
      );
    },
    launches: Object.fromEntries(services.all.map(({ name, launch }) => [name, launch])),
    dir,
    project: undefined,
    environment: stackEnvironment(addresses),
    stop,
    restartBroker: async (index = 0) => {
      await broker(index).stop();
      await broker(index).start();
    },
    killBroker: async (index = 0) => broker(index).kill(),
    startBroker: async (index = 0) => broker(index).start(),
    pauseBroker: async (index = 0) => broker(index).pause(),
    resumeBroker: async (index = 0) => broker(index).resume(),
    stopRegistry: () => registry.stop(),
    startRegistry: () => registry.start(),
    pauseRegistry: async () => registry.pause(),
    resumeRegistry: async () => registry.resume(),
    stopRedis: () => redis.stop(),
    startRedis: () => redis.start(),
    pauseRedis: async () => redis.pause(),
    resumeRedis: async () => redis.resume(),
  };
}

function chooseBroker(brokers: readonly ServiceProcess[], index: number): ServiceProcess {
  const broker = brokers[index];
  if (broker !== undefined) return broker;
  throw new MillraceError('STACK_UNAVAILABLE', 'there is no such broker', {
    value: index,
    allowed: `0 to ${brokers.length - 1}`,
  });
}

/** Removes the temporary folders of stacks whose process was killed before it could; what is another user's stays. */
async function removeAbandonedFolders(): Promise<void> {
  const names = await readdir(tmpdir());
  const abandoned = names.filter((name) => {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1];
    return pid !== undefined && !isRunning(Number(pid));
  });
  await Promise.allSettled(
    abandoned.map((name) => rm(join(tmpdir(), name), { recursive: true, force: true })),
  );
}
