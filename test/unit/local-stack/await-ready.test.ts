import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { awaitReady, portAnswers, urlAnswers } from '../../../src/local-stack/await-ready.ts';
import { freePort } from '../../../src/local-stack/free-port.ts';

async function listen(server: Server | HttpServer): Promise<number> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

describe('awaitReady', () => {
  const times = { intervalMs: 1, timeoutMs: 30_000 };

  it('polls until the probe is true', async () => {
    let polls = 0;
    const probe = async () => ++polls === 4;
    expect(await awaitReady({ ...times, probe, ended: () => false })).toBe('ready');
    expect(polls).toBe(4);
  });

  it('ends with what it waits for, even if another answers in its place', async () => {
    expect(await awaitReady({ ...times, probe: async () => false, ended: () => true })).toBe('ended');
    expect(await awaitReady({ ...times, probe: async () => true, ended: () => true })).toBe('ended');
  });

  it('gives up when the time is over', async () => {
    const never = { probe: async () => false, ended: () => false };
    expect(await awaitReady({ intervalMs: 1, timeoutMs: 5, ...never })).toBe('timed out');
  });
});

describe('portAnswers', () => {
  it('is true where a port is listened on, and where it says what is expected', async () => {
    const port = await listen(
      createServer((socket) => void socket.on('error', () => undefined).end('+PONG\r\n')),
    );
    expect(await portAnswers(port)).toBe(true);
    expect(await portAnswers(port, { ask: 'PING\r\n', answer: /^\+PONG/ })).toBe(true);
    expect(await portAnswers(port, { ask: 'PING\r\n', answer: /^-LOADING/ })).toBe(false);
  });

  it('is false where nobody listens, and where the connection is closed without a word', async () => {
    expect(await portAnswers(await freePort())).toBe(false);
    const port = await listen(createServer((socket) => socket.destroy()));
    expect(await portAnswers(port, { ask: 'PING\r\n', answer: /^\+PONG/ })).toBe(false);
  });
});

describe('urlAnswers', () => {
  it.each([
    [200, true],
    [204, true],
    [404, false],
    [503, false],
  ])('with status %d is %s', async (status, expected) => {
    const port = await listen(createHttpServer((_, response) => void response.writeHead(status).end()));
    expect(await urlAnswers(`http://127.0.0.1:${port}/subjects`)).toBe(expected);
  });

  it('is false where nobody listens', async () => {
    expect(await urlAnswers(`http://127.0.0.1:${await freePort()}/`)).toBe(false);
  });
});
