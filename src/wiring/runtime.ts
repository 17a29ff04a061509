import { randomUUID } from 'node:crypto';
import { createKafkaBus } from '../adapters/kafka/bus.ts';
import type { PrometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import { redisControlStore } from '../adapters/redis/control-store.ts';
import { confluentSchemaRegistry } from '../adapters/registry/confluent.ts';
import { systemClock } from '../adapters/system/clock.ts';
import { systemRandom } from '../adapters/system/random.ts';
import type { Connection, OpeningListener, Transport } from '../client/connection.ts';
import type { Settings } from '../config/settings.ts';
import { type Codecs, createCodecs } from '../contracts/codec.ts';
import { recordTopics } from '../contracts/topic-specs.ts';
import { type TopicDefinition, topicNames } from '../contracts/topics.ts';
import { MillraceError } from '../core/errors.ts';
import { createTopicDelay } from '../core/latency/topic-delay.ts';
import { fleetPools } from '../core/policy/fleet-pools.ts';
import type { Clock } from '../ports/clock.ts';
import type { ControlStore } from '../ports/control-store.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { SchemaRegistry } from '../ports/schema-registry.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { StageDeps } from '../stages/stage.ts';
import { readFleet } from './policy-files.ts';

/** What a process of the real pipeline runs on. */
export interface Runtime extends StageDeps {
  telemetry: PrometheusTelemetry;
  store: ControlStore;
  close(): Promise<void>;
}

const RETRY_MS = 1_000;
/** A person waits at the other end. */
const CLIENT_PATIENCE_MS = 20_000;

/** Connects to Kafka, registry and Redis; a service that is not there yet is waited for. */
export async function openRuntime(
  settings: Settings,
  service: string,
  telemetry: PrometheusTelemetry,
): Promise<Runtime> {
  const clock = systemClock();
  const topics = topicNames(settings.prefix);
  const bus = await openBus(settings, `${service}-${randomUUID().slice(0, 8)}`, telemetry);
  const store = redisControlStore({
    url: required(settings.redisUrl, 'MILLRACE_REDIS_URL'),
    prefix: settings.prefix,
    telemetry,
    clock,
  });
  const codecs = await registerSchemas(settings, telemetry, clock);
  return {
    bus,
    codecs,
    topics,
    clock,
    random: systemRandom(),
    telemetry,
    topicDelay: createTopicDelay(),
    store,
    async close() {
      await bus.close();
      await store.close();
    },
  };
}

/** Codecs whose schemas are registered for every topic of the installation; a registry that is not there yet is waited for. */
export async function registerSchemas(
  settings: Settings,
  telemetry: Telemetry,
  clock: Clock,
  listener?: OpeningListener,
): Promise<Codecs> {
  const codecs = createCodecs({ registry: openRegistry(settings), clock });
  const pools = fleetPools(readFleet(settings)).map(({ pool }) => pool);
  const topics = recordTopics({ topics: topicNames(settings.prefix), tenants: settings.tenants, pools });
  await registerPatiently(() => codecs.register(topics), { telemetry, clock, listener });
  return codecs;
}

export function openBus(settings: Settings, clientId: string, telemetry: Telemetry): Promise<MessageBus> {
  const { kafka } = settings;
  if (kafka.brokers.length === 0) required('', 'MILLRACE_KAFKA_BROKERS');
  return createKafkaBus({
    client: kafka.client,
    brokers: kafka.brokers,
    clientId,
    drainTimeoutMs: kafka.drainTimeoutMs,
    sessionTimeoutMs: kafka.sessionTimeoutMs,
    telemetry,
    tls: kafka.tls,
    ...(kafka.saslMechanism === 'none'
      ? {}
      : {
          sasl: {
            mechanism: kafka.saslMechanism,
            username: kafka.saslUsername,
            password: kafka.saslPassword,
          },
        }),
  });
}

function openRegistry(settings: Settings): SchemaRegistry {
  const { username, password } = settings.registry;
  return confluentSchemaRegistry({
    url: required(settings.registryUrl, 'MILLRACE_REGISTRY_URL'),
    ...(username === '' ? {} : { auth: { username, password } }),
  });
}

function required(value: string, variable: string): string {
  if (value !== '') return value;
  throw new MillraceError('INVALID_CONFIG', `${variable} is not set`, {
    advice: 'Set it, or run `millrace stack up` and use the environment that it prints',
  });
}

interface Patience {
  telemetry: Telemetry;
  clock: Clock;
  listener?: OpeningListener | undefined;
  /** For ever where absent. */
  patienceMs?: number;
}

/** A registry that is away at the start is waited for; one that refuses a schema is not. */
async function registerPatiently(register: () => Promise<void>, patience: Patience): Promise<void> {
  const { telemetry, clock, listener, patienceMs = Number.POSITIVE_INFINITY } = patience;
  const untilMs = clock.monotonicMs() + patienceMs;
  for (let failures = 1; ; failures += 1) {
    try {
      await register();
      return;
    } catch (error) {
      if (!(error instanceof MillraceError) || !error.retryable || clock.monotonicMs() > untilMs) throw error;
      if (listener !== undefined) listener.waitsFor(error.message);
      else if (Number.isInteger(Math.log2(failures)))
        telemetry.logger.warn(
          { error: error.message, failures },
          'the schema registry does not answer; trying again',
        );
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
    }
  }
}

/** A client's way to a real installation. */
export function kafkaTransport(settings: Settings, telemetry: Telemetry): Transport {
  return {
    async open(listener): Promise<Connection> {
      const clock = systemClock();
      const topics = topicNames(settings.prefix);
      const codecs = createCodecs({ registry: openRegistry(settings), clock });
      const written: [string, TopicDefinition][] = [
        ...recordTopics({ topics, tenants: settings.tenants, pools: [] }),
      ].filter(([, { record }]) => ['ScoreRequest', 'ControlCommand', 'Outcome'].includes(record));
      await registerPatiently(() => codecs.register(new Map(written)), {
        telemetry,
        clock,
        listener,
        patienceMs: CLIENT_PATIENCE_MS,
      });
      listener?.waitsFor(`Kafka at ${settings.kafka.brokers.join(', ')}`);
      const bus = await openBus(settings, `client-${randomUUID().slice(0, 8)}`, telemetry);
      return { bus, codecs, topics, clock, telemetry, newId: () => randomUUID(), close: () => bus.close() };
    },
  };
}
