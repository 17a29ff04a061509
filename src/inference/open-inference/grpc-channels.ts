import { createSecureContext } from 'node:tls';
import type { ChannelCredentials, Client, ClientOptions } from '@grpc/grpc-js';

type GrpcLibrary = typeof import('@grpc/grpc-js');

/** The first try to connect again comes so soon, and none later than the last. */
const RECONNECT_MS = { first: 50, last: 500 };
/** A connection that nobody used for so long may lead nowhere: what translates addresses on its way forgets it. */
const IDLE_MS = 60_000;
/** The most that a message of protobuf can have. */
const SENT_BYTES_MAX = 2 ** 31 - 1;

const OPTIONS: ClientOptions = {
  'grpc.max_send_message_length': SENT_BYTES_MAX,
  'grpc.initial_reconnect_backoff_ms': RECONNECT_MS.first,
  'grpc.max_reconnect_backoff_ms': RECONNECT_MS.last,
  'grpc.dns_min_time_between_resolutions_ms': RECONNECT_MS.last,
  'grpc.client_idle_timeout_ms': IDLE_MS,
  // Each channel has connections of its own, so that another one is another connection.
  'grpc.use_local_subchannel_pool': 1,
  // What is asked again is decided here, by the time that is left; and the address is the one of the settings, as over HTTP.
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_http_proxy': 0,
};

/**
 * Channels to one server. How long a message it may send is a property of a channel, so there is one for each power of two: nearly every call is
 * within the first.
 */
export class GrpcChannels {
  readonly #library: GrpcLibrary;
  readonly #url: URL;
  readonly #open = new Map<number, Client>();

  /** @param url `http(s)://host:port` */
  constructor(library: GrpcLibrary, url: string) {
    this.#library = library;
    this.#url = new URL(url);
  }

  /** A channel on which no message of more than twice so many bytes is taken. */
  for(bytesMax: number): Client {
    const size = 2 ** Math.ceil(Math.log2(bytesMax));
    const open = this.#open.get(size) ?? this.#create(size);
    this.#open.set(size, open);
    return open;
  }

  /** No call goes to it any more; those that are under way go on. */
  retire(channel: Client): void {
    for (const [size, open] of this.#open) if (open === channel) this.#open.delete(size);
    channel.close();
  }

  close(): void {
    for (const channel of this.#open.values()) channel.close();
    this.#open.clear();
  }

  #create(bytesMax: number): Client {
    const { hostname, port, protocol } = this.#url;
    const address = `dns:${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
    return new this.#library.Client(address, this.#credentials(), {
      ...OPTIONS,
      'grpc.max_receive_message_length': bytesMax,
    });
  }

  #credentials(): ChannelCredentials {
    const { credentials } = this.#library;
    if (this.#url.protocol === 'http:') return credentials.createInsecure();
    // Node's own context trusts whom HTTP trusts; the library's other one has an environment variable of its own.
    return credentials.createFromSecureContext(createSecureContext());
  }
}
