import { MillraceError } from '../../core/errors.ts';
import { backoffMs } from './backoff.ts';
import type { KafkaClient } from './client.ts';
import { type KafkaBus, KafkaMessageBus } from './kafka-message-bus.ts';
import type { ClientOptions, KafkaBusOptions } from './options.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 30_000;
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 1_000;

/**
 * The message bus on a Kafka cluster.
 *
 * Waits for a broker to answer, `connectTimeoutMs` at most; from then on brokers may go and come.
 * @throws MillraceError BUS_UNAVAILABLE where none answers in that time.
 */
export async function createKafkaBus(options: KafkaBusOptions): Promise<KafkaBus> {
  const client = await createClient(options);
  await connect(client, options);
  return new KafkaMessageBus(client, options);
}

/** Only the library that is used is loaded. */
async function createClient(options: KafkaBusOptions): Promise<KafkaClient> {
  const { clientId, brokers, tls, sasl, requestTimeoutMs = REQUEST_TIMEOUT_MS, idempotent = false } = options;
  const clientOptions: ClientOptions = { clientId, brokers, tls, sasl, requestTimeoutMs, idempotent };
  switch (options.client) {
    case 'kafkajs': {
      const { KafkaJsClient } = await import('./kafkajs/client.ts');
      return new KafkaJsClient(clientOptions, options.telemetry.logger);
    }
    case 'platformatic': {
      const { PlatformaticClient } = await import('./platformatic/client.ts');
      return new PlatformaticClient(clientOptions, options.telemetry.logger);
    }
    default:
      return options.client satisfies never;
  }
}

async function connect(
  client: KafkaClient,
  { brokers, connectTimeoutMs = CONNECT_TIMEOUT_MS }: KafkaBusOptions,
): Promise<void> {
  const giveUpAt = performance.now() + connectTimeoutMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await client.connect();
    } catch (error) {
      if (performance.now() < giveUpAt) {
        await new Promise((resolve) =>
          setTimeout(resolve, backoffMs(attempt, RETRY_FIRST_MS, RETRY_MOST_MS)),
        );
        continue;
      }
      await client.close();
      throw new MillraceError('BUS_UNAVAILABLE', `No Kafka broker answered within ${connectTimeoutMs} ms`, {
        value: brokers.join(', '),
        advice: 'Check that the brokers run and can be reached from here, and their TLS and SASL settings.',
        cause: error,
      });
    }
  }
}
