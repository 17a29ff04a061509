import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Between a client and a server, to lose what is on its way. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that were made. */
  readonly connections: number;
  /** Those that are open carry nothing more, and nobody is told; new ones do. */
  goSilent(): void;
  /** Those that are open are cut. */
  cut(): void;
  close(): Promise<void>;
}

export async function tcpProxy(target: number): Promise<TcpProxy> {
  const open = new Set<[Socket, Socket]>();
  let connections = 0;
  const server = createServer((near) => {
    connections += 1;
    const far = connect(target, '127.0.0.1');
    const pair: [Socket, Socket] = [near, far];
    open.add(pair);
    near.pipe(far).pipe(near);
    for (const socket of pair) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        for (const other of pair) other.destroy();
        open.delete(pair);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const [near] of open) near.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    goSilent() {
      for (const [near, far] of open) {
        near.unpipe(far).resume();
        far.unpipe(near).resume();
      }
    },
    cut,
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
