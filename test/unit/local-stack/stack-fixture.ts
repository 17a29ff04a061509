import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { onTestFinished } from 'vitest';
import { freePort } from '../../../src/local-stack/free-port.ts';

async function listen(server: Server): Promise<number> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** The environment of a stack whose services answer. */
export async function answering(brokers = 1, redisAnswer = '+PONG'): Promise<Record<string, string>> {
  const tcp = () =>
    createServer((socket) => void socket.on('error', () => undefined).end(`${redisAnswer}\r\n`));
  const kafka = await Promise.all(Array.from({ length: brokers }, () => listen(tcp())));
  const registry = await listen(createHttpServer((_, response) => void response.end('[]')));
  return {
    MILLRACE_KAFKA_BROKERS: kafka.map((port) => `127.0.0.1:${port}`).join(','),
    MILLRACE_REGISTRY_URL: `http://127.0.0.1:${registry}`,
    MILLRACE_REDIS_URL: `redis://127.0.0.1:${await listen(tcp())}`,
  };
}

/** The environment of a stack of this machine that is down. */
export async function silent(): Promise<Record<string, string>> {
  return {
    MILLRACE_KAFKA_BROKERS: `127.0.0.1:${await freePort()}`,
    MILLRACE_REGISTRY_URL: `http://127.0.0.1:${await freePort()}`,
    MILLRACE_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
  };
}

/** A program that answers as Redis does on this port. */
export function redisProgram(port: number): string[] {
  return [
    '-e',
    `require('node:net').createServer((s) => s.on('error', () => {}).end('+PONG\\r\\n')).listen(${port}, '127.0.0.1')`,
  ];
}
