import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import kafkajs from 'kafkajs';
import { createKafkaBus } from '../../src/adapters/kafka/bus.ts';
import type { KafkaBus } from '../../src/adapters/kafka/kafka-message-bus.ts';
import { applyPatches } from '../../src/adapters/kafka/kafkajs/patches.ts';
import type { KafkaBusOptions } from '../../src/adapters/kafka/options.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { prepareBroker } from '../../src/local-stack/kafka-broker.ts';
import { kafkaUuid } from '../../src/local-stack/kafka-storage.ts';
import { findPrograms } from '../../src/local-stack/programs.ts';
import type { ServiceProcess } from '../../src/local-stack/service-process.ts';
import { choosePorts } from '../../src/local-stack/services.ts';
import { warmUp } from '../../src/local-stack/warm-up.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { LogFields, Logger } from '../../src/ports/telemetry.ts';
import type { BusFactory } from './message-bus.fixture.ts';
import type { RestartableBusFactory } from './message-bus.suite.ts';

export type Client = KafkaBusOptions['client'];

/** The sockets of one bus, so that a test can take them away as the end of the process would. */
interface Wires {
  readonly sockets: Set<Socket>;
  isCut: boolean;
}

const wiresOfCaller = new AsyncLocalStorage<Wires>();

subscribe('net.client.socket', (message) => {
  const { socket } = message as { socket: Socket };
  const wires = wiresOfCaller.getStore();
  if (wires === undefined) return;
  // Not yet: `connect` follows, and brings a socket back to life.
  if (wires.isCut) process.nextTick(() => socket.destroy());
  wires.sockets.add(socket);
  socket.once('close', () => wires.sockets.delete(socket));
});

/** Whatever is called on the bus, the sockets that this leads to are noted as its own. */
function withWires(bus: KafkaBus, wires: Wires): KafkaBus {
  return new Proxy(bus, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => wiresOfCaller.run(wires, () => Reflect.apply(value, target, args));
    },
  });
}

const OPEN_AT_MOST_MS = 60_000;
const POLL_MS = 10;
const LINES_QUOTED = 40;

/** Keeps what the clients logged, for the message of a test that fails. */
function lineLogger(lines: string[], clock: Clock): Logger {
  const write =
    (level: string) =>
    (fields: LogFields, message: string): void => {
      lines.push(
        `${Math.round(clock.monotonicMs())} ${level} ${message} ${inspect(fields, { breakLength: Infinity, depth: 1 }).slice(0, 300)}`,
      );
      if (lines.length > 2 * LINES_QUOTED) lines.splice(0, LINES_QUOTED);
    };
  const logger: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => logger,
  };
  return logger;
}

async function produceForeign(
  brokers: readonly string[],
  topic: string,
  { value, headers }: { value: Buffer; headers: Readonly<Record<string, Buffer | null>> },
): Promise<void> {
  // kafkajs as it comes writes no header without a value.
  applyPatches();
  const kafka = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING });
  const producer = kafka.producer({ createPartitioner: () => () => 0 });
  await producer.connect();
  const messages = [{ key: value, value, headers: headers as Record<string, Buffer> }];
  await producer.send({ topic, messages }).finally(() => producer.disconnect());
}

/** One client library on brokers that run. */
export function kafkaFactory(
  client: Client,
  brokers: readonly string[],
  more: Partial<KafkaBusOptions> = {},
): BusFactory {
  const clock = systemClock();
  const buses = new Map<KafkaBus, Wires>();
  const lines: string[] = [];
  const pass = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
  return {
    clock,
    quietMs: 700,
    sessionTimeoutMs: 6_000,
    settle: (promise) => promise,
    pass,
    eventually: async (condition, what) => {
      for (const since = clock.monotonicMs(); !condition(); await pass(POLL_MS)) {
        if (clock.monotonicMs() - since > OPEN_AT_MOST_MS)
          throw new Error(
            `in ${OPEN_AT_MOST_MS / 1_000} s, not: ${what}; the clients' last lines:\n${lines.slice(-LINES_QUOTED).join('\n')}`,
          );
      }
    },
    connect: async (options = {}) => {
      const wires: Wires = { sockets: new Set(), isCut: false };
      const telemetry = { ...silentTelemetry(), logger: lineLogger(lines, clock) };
      const own = { clientId: 'conformance', drainTimeoutMs: 5_000, sessionTimeoutMs: 6_000, telemetry };
      const bus = await wiresOfCaller.run(wires, () =>
        createKafkaBus({ client, brokers, ...own, ...more, ...options }),
      );
      const wired = withWires(bus, wires);
      buses.set(wired, wires);
      return wired;
    },
    produceForeign: (topic, value, headers) => produceForeign(brokers, topic, { value, headers }),
    kill: async (bus) => {
      const wires = buses.get(bus as KafkaBus);
      if (wires === undefined) throw new Error('not a bus of this factory');
      wires.isCut = true;
      for (const socket of wires.sockets) socket.destroy();
    },
    close: async () => {
      const closing = [...buses].map(async ([bus, { isCut }]) => {
        // What was killed ends too, but nobody waits for it: it tries for some seconds to reach its broker.
        const closed = bus.close();
        if (!isCut) await closed;
      });
      await Promise.all(closing);
    },
  };
}

/** Brokers that are the test's own, to be taken down. */
export interface OwnBrokers {
  readonly addresses: readonly string[];
  readonly processes: readonly ServiceProcess[];
  stop(): Promise<void>;
}

export async function startBrokers(count: 1 | 3): Promise<OwnBrokers> {
  const dir = await mkdtemp(join(tmpdir(), 'millrace-kafka-test-'));
  const programs = await findPrograms(process.env, () => undefined);
  const { nodes } = await choosePorts(count);
  const clusterId = kafkaUuid();
  const processes = await Promise.all(
    nodes.map((node) =>
      prepareBroker({
        programs,
        archives: 'use',
        node,
        nodes,
        clusterId,
        folder: join(dir, `kafka-${node.nodeId}`),
        lifetime: 'dies-with-parent',
      }),
    ),
  );
  await Promise.all(processes.map((broker) => broker.start()));
  const addresses = nodes.map(({ brokerPort }) => `127.0.0.1:${brokerPort}`);
  await warmUp(addresses);
  return {
    addresses,
    processes,
    stop: async () => {
      await Promise.all(processes.map((broker) => broker.kill()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function restartableFactory(client: Client, brokers: OwnBrokers): RestartableBusFactory {
  const [broker] = brokers.processes;
  if (broker === undefined) throw new Error('no broker');
  return {
    ...kafkaFactory(client, brokers.addresses),
    stopBroker: () => broker.kill(),
    startBroker: () => broker.start(),
  };
}

/** The brokers that the test run provides. */
export function sharedBrokers(): readonly string[] {
  const brokers = process.env['MILLRACE_KAFKA_BROKERS'];
  if (brokers === undefined || brokers === '') throw new Error('MILLRACE_KAFKA_BROKERS is not set');
  return brokers.split(',');
}
