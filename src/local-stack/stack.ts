import type { ServiceLaunch } from './service-process.ts';

/** Where a stack's services come from. Only the last two kinds are ours to break. */
export type StackSource = 'environment' | 'docker' | 'processes';

/** A Kafka, a schema registry and a Redis that answer, with the means to take each down and bring it back. */
export interface Stack {
  readonly source: StackSource;
  /** `host:port` of each broker. */
  readonly kafkaBrokers: readonly string[];
  /** Confluent-compatible API, with its path. */
  readonly registryUrl: string;
  readonly redisUrl: string;
  /** Service name (kafka-1, registry, redis) to pid, of those that run as our processes now. */
  readonly pids: Readonly<Record<string, number>>;
  /** Service name to how it was started, of those that are processes of ours. */
  readonly launches: Readonly<Record<string, ServiceLaunch>>;
  /** Where data and logs are; undefined unless the services are processes of ours. */
  readonly dir: string | undefined;
  /** Name of the Compose project; undefined unless Docker runs the services. */
  readonly project: string | undefined;
  /** The three addresses as the variables that millrace's services read. */
  readonly environment: Readonly<Record<string, string>>;

  /** Ends the services and removes their data, unless the folder was given. A stack of the environment is left alone. */
  stop(): Promise<void>;

  // Faults. Each resolves when the service is gone, or answers again on the same port with the same data (Redis comes
  // up empty). Broker indices count from 0. On a stack of the environment they reject with STACK_UNAVAILABLE.
  /** An orderly stop, then a start. */
  restartBroker(index?: number): Promise<void>;
  /** kill -9. */
  killBroker(index?: number): Promise<void>;
  startBroker(index?: number): Promise<void>;
  /** Connections stay open and nothing answers. */
  pauseBroker(index?: number): Promise<void>;
  resumeBroker(index?: number): Promise<void>;
  stopRegistry(): Promise<void>;
  startRegistry(): Promise<void>;
  pauseRegistry(): Promise<void>;
  resumeRegistry(): Promise<void>;
  stopRedis(): Promise<void>;
  startRedis(): Promise<void>;
  pauseRedis(): Promise<void>;
  resumeRedis(): Promise<void>;
}

export type StackAddresses = Pick<Stack, 'kafkaBrokers' | 'registryUrl' | 'redisUrl'>;

export function stackEnvironment(addresses: StackAddresses): Record<string, string> {
  return {
    MILLRACE_KAFKA_BROKERS: addresses.kafkaBrokers.join(','),
    MILLRACE_REGISTRY_URL: addresses.registryUrl,
    MILLRACE_REDIS_URL: addresses.redisUrl,
  };
}
