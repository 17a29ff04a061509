import { connect, createServer, type Server, type Socket } from 'node:net';

/** Redis of the environment. @throws Error where there is none. */
export function redisUrl(): string {
  const url = process.env['MILLRACE_REDIS_URL'];
  if (url === undefined || url === '') {
    throw new Error('MILLRACE_REDIS_URL is not set: name a Redis, or let `millrace stack up` start one');
  }
  return url;
}

let serial = 0;

/** A key prefix that no other test, process or run uses. */
export function uniquePrefix(): string {
  serial++;
  return `conformance-${process.pid}-${Date.now().toString(36)}-${serial}`;
}

/** A way to Redis on which packets can get lost. */
export interface FaultyWay {
  readonly url: string;
  /** From now on nothing passes in either direction, and nobody is told. New connections are taken, and stay silent. */
  drop(): void;
  /** New connections pass again; those from before stay silent. */
  pass(): void;
  /** Bytes that came from Redis so far. */
  bytesBack(): number;
  /** Ends every connection. */
  cut(): void;
  /** Refuses new connections, and ends the present ones, until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  close(): Promise<void>;
}

export async function faultyWay(targetUrl: string): Promise<FaultyWay> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  let dropping = false;
  let port = 0;
  let bytesBack = 0;
  let server: Server | undefined;

  const relay = (client: Socket): void => {
    const upstream = connect(Number(target.port), target.hostname);
    const forward = (from: Socket, to: Socket): void => {
      sockets.add(from);
      if (dropping) silent.add(from);
      from.on('data', (bytes) => {
        if (from === upstream) bytesBack += bytes.length;
        if (!silent.has(from)) to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        silent.delete(from);
        to.destroy();
      });
    };
    forward(client, upstream);
    forward(upstream, client);
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const open = async (): Promise<void> => {
    server = createServer(relay);
    await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
    const address = server.address();
    if (typeof address === 'object' && address !== null) port = address.port;
  };
  const shut = async (): Promise<void> => {
    cut();
    await new Promise<void>((resolve) => {
      if (server === undefined) resolve();
      else server.close(() => resolve());
      cut();
    });
    server = undefined;
  };
  await open();
  return {
    url: `redis://127.0.0.1:${port}`,
    drop: () => {
      dropping = true;
      for (const socket of sockets) silent.add(socket);
    },
    pass: () => {
      dropping = false;
    },
    bytesBack: () => bytesBack,
    cut,
    shut,
    open,
    close: shut,
  };
}
