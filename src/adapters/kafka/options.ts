import type { ConnectionOptions } from 'node:tls';
import type { BusOptions } from '../../ports/message-bus.ts';
import type { OutOfRangePolicy } from './start-position.ts';

export type SaslOptions =
  | { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string }
  /** Called for each authentication. */
  | { mechanism: 'oauthbearer'; token: () => Promise<string> };

export interface KafkaBusOptions extends BusOptions {
  client: 'kafkajs' | 'platformatic';
  /** `host:port` of some brokers of the cluster. */
  brokers: readonly string[];
  /** TLS: true for the system's certificates, or what `tls.connect` takes. */
  tls?: boolean | ConnectionOptions;
  sasl?: SaslOptions;
  /** How long a request may go unanswered before its connection is given up (default 10 000). */
  requestTimeoutMs?: number;
  /** How long `createKafkaBus` waits for a broker (default 30 000). */
  connectTimeoutMs?: number;
  /** Where to go on when the committed offset is not in the log (default `earliest`: nothing that is kept is missed). */
  outOfRange?: OutOfRangePolicy;
  /**
   * The broker drops what a retry stores twice, as long as the process lives and each topic's partitions lie on one broker (default false). No setting
   * of a service: what several brokers lead is sent by several requests at once, and where kafkajs had an answer from some of them only, it takes
   * back no number of what these stored, so a retry doubles it all the same. Who reads must know doubles by identity anyway.
   */
  idempotent?: boolean;
}

/** What a client library is made with. */
export interface ClientOptions {
  clientId: string;
  brokers: readonly string[];
  tls: boolean | ConnectionOptions | undefined;
  sasl: SaslOptions | undefined;
  requestTimeoutMs: number;
  idempotent: boolean;
}
