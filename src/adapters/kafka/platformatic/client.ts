import type { Logger } from '../../../ports/telemetry.ts';
import type { KafkaClient } from '../client.ts';
import type { ClientOptions } from '../options.ts';

export declare const PlatformaticClient: new (options: ClientOptions, logger: Logger) => KafkaClient;
