/// <reference types="node" preserve="true" />
// The types of the package speak of Buffer and AsyncDisposable: whoever compiles against them gets Node's with it.
import { prometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import { systemRandom } from '../adapters/system/random.ts';
import type { Transport } from '../client/connection.ts';
import { loadSettings } from '../config/load-settings.ts';
import { ERROR_CODES, type ErrorCode, MillraceError } from '../core/errors.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { embeddedTransport } from './embedded-transport.ts';
import { kafkaTransport } from './runtime.ts';

export { ed25519Signer as signer } from '../adapters/system/ed25519.ts';
// The package's main export: everything that a client in TypeScript needs, and nothing else.
export {
  type Client,
  type CommandInput,
  connect,
  type OutcomeInput,
  type PublishOptions,
  type RequestInput,
} from '../client/client.ts';
export type { Connection, OpeningListener, Transport } from '../client/connection.ts';
export type { ControlEventStream, ControlEventsOptions, LoggedEvent } from '../client/control-events.ts';
export { rankedCandidates } from '../client/ranking.ts';
export type { UnreadableResult } from '../client/read-result.ts';
export type { ReceivedResult, ResultStream, ResultsOptions } from '../client/result-stream.ts';
export {
  fp32,
  int64,
  readFp32,
  readIds,
  type TensorDatatype,
  type TensorValue,
  tensor,
  text,
} from '../client/tensors.ts';
export type {
  CommandType,
  ControlEvent,
  Outcome,
  OutcomeKind,
  OutcomeType,
  Reason,
  ScoredResult,
  ScoreRequest,
  Signature,
  Tensor,
  Timings,
} from '../contracts/records.ts';
export type { Signer } from '../ports/signatures.ts';
export type { Logger, Telemetry } from '../ports/telemetry.ts';
export { ERROR_CODES, type ErrorCode, MillraceError };

export interface KafkaOptions {
  /** Brokers to start from, `host:port`. */
  brokers: readonly string[];
  /** Confluent-compatible schema registry. */
  registryUrl: string;
  /** HTTP Basic: user and password, or API key and secret. */
  registryAuth?: { username: string; password: string };
  /** First part of all topic names; `millrace` where absent. */
  prefix?: string;
  /** Kafka client library; kafkajs where absent. */
  client?: 'kafkajs' | 'platformatic';
  /** TLS to the brokers, with the system's certificate authorities. */
  tls?: boolean;
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string };
  /** Where logs and metrics of the client go; by default warnings go to standard error as JSON lines. */
  telemetry?: Telemetry;
}

/** The way to an installation on Kafka. @throws MillraceError INVALID_CONFIG for options that are not valid */
export function kafka(options: KafkaOptions): Transport {
  // A program without types may leave them out.
  const { brokers = [], registryUrl = '' }: Partial<KafkaOptions> = options;
  if (brokers.length === 0) throw emptyOption('brokers', "brokers to start from: ['host:port']");
  if (registryUrl === '') throw emptyOption('registryUrl', "the schema registry's URL: 'http://host:port'");
  const { settings } = loadSettings(
    {},
    {
      'kafka.brokers': options.brokers,
      'kafka.client': options.client,
      'kafka.tls': options.tls,
      'kafka.saslMechanism': options.sasl?.mechanism,
      'kafka.saslUsername': options.sasl?.username,
      'kafka.saslPassword': options.sasl?.password,
      registryUrl: options.registryUrl,
      'registry.username': options.registryAuth?.username,
      'registry.password': options.registryAuth?.password,
      prefix: options.prefix,
    },
  );
  return kafkaTransport(settings, options.telemetry ?? clientTelemetry());
}

function emptyOption(name: keyof KafkaOptions, allowed: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', `kafka(): ${name} is empty`, {
    allowed,
    advice: 'Give the addresses of the installation, or use embedded() for a pipeline in this process',
  });
}

export interface EmbeddedOptions {
  /** Policy file; the packaged starter where absent. */
  policy?: string;
  /** Fleet file: accelerator classes and their pools; the packaged one where absent. */
  fleet?: string;
  /** Folder of the model repository; the packaged one where absent. */
  models?: string;
  /** `fused` runs extractor and router as one stage. */
  topology?: 'split' | 'fused';
  /** Seed of everything that is drawn; one from the operating system where absent. */
  seed?: number;
  /** Where logs and metrics go; by default warnings go to standard error as JSON lines. */
  telemetry?: Telemetry;
}

/**
 * The whole pipeline in this process: no Kafka, no Redis, the packaged model. It starts with the first client that connects; clients that
 * connect over the same transport share it, and it ends when the last one closes.
 * @throws MillraceError INVALID_CONFIG for options that are not valid
 */
export function embedded(options: EmbeddedOptions = {}): Transport {
  const { settings } = loadSettings(
    {},
    {
      policy: options.policy,
      fleet: options.fleet,
      models: options.models,
      topology: options.topology,
    },
  );
  return embeddedTransport(settings, {
    telemetry: options.telemetry ?? clientTelemetry(),
    random: options.seed === undefined ? systemRandom() : seededRandom(options.seed),
  });
}

function clientTelemetry(): Telemetry {
  return prometheusTelemetry({ service: 'millrace-client', level: 'warn', destination: process.stderr });
}
