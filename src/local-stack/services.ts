import { join } from 'node:path';
import type { BrokerNode } from './broker-properties.ts';
import { freePorts } from './free-port.ts';
import type { ArchiveMode } from './jvm-arguments.ts';
import { prepareBroker } from './kafka-broker.ts';
import { kafkaUuid } from './kafka-storage.ts';
import type { Programs } from './programs.ts';
import { prepareRedis } from './redis.ts';
import { prepareRegistry, registryUrl } from './registry.ts';
import type { Lifetime, ServiceProcess } from './service-process.ts';
import type { StackAddresses } from './stack.ts';
import { warmUp } from './warm-up.ts';

export interface Ports {
  nodes: readonly BrokerNode[];
  registry: number;
  registryManagement: number;
  redis: number;
}

/** The processes of one stack, and where they answer. */
export interface Services {
  addresses: StackAddresses;
  brokers: readonly ServiceProcess[];
  registry: ServiceProcess;
  redis: ServiceProcess;
  all: readonly ServiceProcess[];
}

/** Free loopback ports for a stack of `brokerCount` brokers. */
export async function choosePorts(brokerCount: number): Promise<Ports> {
  const [registry = 0, registryManagement = 0, redis = 0, ...rest] = await freePorts(3 + 2 * brokerCount);
  const nodes = Array.from({ length: brokerCount }, (_, index) => ({
    nodeId: index + 1,
    brokerPort: rest[2 * index] ?? 0,
    controllerPort: rest[2 * index + 1] ?? 0,
  }));
  return { nodes, registry, registryManagement, redis };
}

/** Lays out the folders of all services under `dir`; starts nothing. */
export async function prepareServices(options: {
  programs: Programs;
  archives: ArchiveMode;
  dir: string;
  ports: Ports;
  lifetime: Lifetime;
}): Promise<Services> {
  const { dir, ports, ...rest } = options;
  const clusterId = kafkaUuid();
  const brokers = await Promise.all(
    ports.nodes.map((node) =>
      prepareBroker({
        node,
        nodes: ports.nodes,
        clusterId,
        folder: join(dir, `kafka-${node.nodeId}`),
        ...rest,
      }),
    ),
  );
  const registry = await prepareRegistry({
    port: ports.registry,
    managementPort: ports.registryManagement,
    folder: join(dir, 'registry'),
    ...rest,
  });
  const redis = await prepareRedis({ port: ports.redis, folder: join(dir, 'redis'), ...rest });
  return {
    addresses: {
      kafkaBrokers: ports.nodes.map((node) => `127.0.0.1:${node.brokerPort}`),
      registryUrl: registryUrl(ports.registry),
      redisUrl: `redis://127.0.0.1:${ports.redis}`,
    },
    brokers,
    registry,
    redis,
    all: [...brokers, registry, redis],
  };
}

/** Starts all services at once, warms Kafka up, and resolves when all answer. If one fails, none is left running. */
export async function startServices(services: Services, onProgress: (line: string) => void): Promise<void> {
  const start = async (service: ServiceProcess) => {
    await service.start();
    onProgress(`${service.name} answers`);
  };
  const kafka = Promise.all(services.brokers.map(start)).then(() => warmUp(services.addresses.kafkaBrokers));
  const starts = await Promise.allSettled([kafka, start(services.registry), start(services.redis)]);
  const failed = starts.find((result) => result.status === 'rejected');
  if (failed === undefined) return;
  await Promise.all(services.all.map((service) => service.kill()));
  throw failed.reason;
}
