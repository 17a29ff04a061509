import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { MillraceError } from '../core/errors.ts';

// Below the ephemeral ranges of Linux (32768…) and macOS (49152…): while a service is down, no outgoing
// connection can take its port, so that it can come back on the same one.
const PORTS = { min: 20_000, end: 32_000 };
const ATTEMPTS = 200;

/** A loopback TCP port that nobody listens on now. `taken` are ports already promised to somebody. */
export async function freePort(taken: ReadonlySet<number> = new Set(), ports = PORTS): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = randomInt(ports.min, ports.end);
    if (!taken.has(port) && (await canListen(port))) return port;
  }
  throw new MillraceError('STACK_UNAVAILABLE', 'no free loopback port was found', {
    allowed: `${ports.min} to ${ports.end - 1}`,
    advice: 'Close some of the programs that listen there',
  });
}

/** `count` different free ports. */
export async function freePorts(count: number): Promise<number[]> {
  const taken = new Set<number>();
  while (taken.size < count) taken.add(await freePort(taken));
  return [...taken];
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
