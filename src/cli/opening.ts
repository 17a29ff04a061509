import type { Connection, Transport } from '../client/connection.ts';
import { waitingFor } from './waiting.ts';

type Listener = Parameters<typeof waitingFor>[0];

/** Opens something over a transport; what takes longer than a moment is told in one line, with what it waits for. */
export function opening<T>(
  context: Listener,
  what: string,
  transport: Transport,
  open: (transport: Transport) => Promise<T>,
): Promise<T> {
  let holdUp = '';
  const told: Transport = {
    open: () =>
      transport.open({
        waitsFor(text) {
          holdUp = text;
        },
      }),
  };
  return waitingFor(context, () => (holdUp === '' ? what : `${what}: ${holdUp}`), open(told));
}

/** A connection to the installation. */
export function openingConnection(context: Listener, transport: Transport): Promise<Connection> {
  return opening(context, 'connecting to the installation', transport, (told) => told.open());
}
