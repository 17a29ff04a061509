import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `probe` is true, until `ended` is true (what is waited for has died), or until the time is up. */
export async function awaitReady(options: {
  probe: () => Promise<boolean>;
  ended: () => boolean;
  intervalMs: number;
  timeoutMs: number;
}): Promise<'ready' | 'ended' | 'timed out'> {
  const endMs = performance.now() + options.timeoutMs;
  for (;;) {
    const ready = await options.probe();
    // A probe that was answered by another program on the same port says nothing about one that has ended.
    if (options.ended()) return 'ended';
    if (ready) return 'ready';
    if (performance.now() > endMs) return 'timed out';
    await sleep(options.intervalMs);
  }
}

/** Whether something accepts connections on this port, of loopback unless a host is given; with `exchange`, whether it answers so. */
export function portAnswers(
  port: number,
  exchange?: { ask: string; answer: RegExp },
  host = '127.0.0.1',
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (answers: boolean) => {
      socket.destroy();
      resolve(answers);
    };
    socket.setTimeout(1_000, () => finish(false));
    socket.once('error', () => finish(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => {
      if (exchange === undefined) finish(true);
      else socket.write(exchange.ask);
    });
    socket.once('data', (bytes) => finish(exchange?.answer.test(bytes.toString('latin1')) ?? true));
  });
}

/** Whether this address answers an HTTP GET with a status of 2xx, or asks for credentials. */
export async function urlAnswers(address: string): Promise<boolean> {
  try {
    const url = new URL(address);
    // `fetch` takes no URL that carries credentials.
    url.username = '';
    url.password = '';
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await response.arrayBuffer();
    return response.ok || response.status === 401 || response.status === 403;
  } catch {
    return false;
  }
}
