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
    const all = Array.from({ length: 12_000 }, (_, index) => 20_000 + index);
    const left = await freePort();
    expect(await freePort(new Set(all.filter((port) => port !== left && port % 50 !== 0)))).toSatisfy(
      (port: number) => port === left || port % 50 === 0,
    );
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(left, '127.0.0.1', resolve));
    await expect(freePort(new Set(all.filter((port) => port !== left)))).rejects.toThrow(/no free loopback port/);
  });
});
