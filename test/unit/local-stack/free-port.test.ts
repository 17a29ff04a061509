import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort, freePorts } from '../../../src/local-stack/free-port.ts';

describe('freePorts', () => {
  it('gives different ports below the ephemeral range, each free to listen on', async () => {
    const ports = await freePorts(20);
    expect(new Set(ports).size).toBe(20);
    for (const port of ports) {
      expect(port).toBeGreaterThanOrEqual(20_000);
      expect(port).toBeLessThan(32_000);
      await new Promise<void>((resolve, reject) => {
        const server = createServer().once('error', reject);
        server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
      });
    }
  });

  it('gives neither a port that is promised nor one that is listened on', async () => {
    const port = await freePort();
    const only = { min: port, end: port + 1 };
    expect(await freePort(new Set(), only)).toBe(port);
    await expect(freePort(new Set([port]), only)).rejects.toThrow(/no free loopback port/);
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await expect(freePort(new Set(), only)).rejects.toMatchObject({ code: 'STACK_UNAVAILABLE' });
  });
});
