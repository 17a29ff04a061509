import { type MemoryConnection, memoryBroker } from '../../src/adapters/memory/bus.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import type { BusOptions, Headers } from '../../src/ports/message-bus.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import {
  messageBusConformance,
  messageBusRestartConformance,
  type RestartableBusFactory,
} from './message-bus.suite.ts';

/** How time goes on in one of the runs. */
type Course = Pick<
  RestartableBusFactory,
  'clock' | 'settle' | 'eventually' | 'pass' | 'quietMs' | 'sessionTimeoutMs'
>;

function memoryFactory(course: Course, deliveryDelayMs: number): RestartableBusFactory {
  const broker = memoryBroker({ clock: course.clock, deliveryDelayMs });
  const connections = new Set<MemoryConnection>();
  return {
    ...course,
    connect: async (options: Partial<BusOptions> = {}) => {
      const connection = broker.connect({
        clientId: 'conformance',
        drainTimeoutMs: 5_000,
        sessionTimeoutMs: course.sessionTimeoutMs,
        telemetry: silentTelemetry(),
        ...options,
      });
      connections.add(connection);
      return connection;
    },
    produceForeign: async (topic, value, headers) => {
      const [bus] = connections;
      await bus?.produce({ topic, partition: 0, key: value, value, headers: headers as Headers });
    },
    kill: async (bus) => {
      for (const connection of connections) if (connection === bus) connection.crash();
    },
    stopBroker: async () => broker.stop(),
    startBroker: async () => broker.start(),
    close: async () => {
      await course.settle(Promise.all([...connections].map((connection) => connection.close())));
    },
  };
}

/** Virtual time: one thing at a time moves it, in the order in which they asked. */
function virtualCourse(): Course {
  const clock = virtualClock();
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  };
  const until = async (condition: () => boolean, what: string): Promise<void> => {
    if (!(await clock.runUntil(condition, 600_000))) throw new Error(`in 10 virtual minutes, not: ${what}`);
  };
  return {
    clock,
    quietMs: 1_000,
    sessionTimeoutMs: 6_000,
    settle: (promise) =>
      inTurn(async () => {
        let settled = false;
        const noted = promise.finally(() => {
          settled = true;
        });
        noted.catch(() => {}); // Reported by the promise itself.
        await until(() => settled, 'a promise of the bus settled');
        return promise;
      }),
    eventually: (condition, what) => inTurn(() => until(condition, what)),
    pass: (ms) => inTurn(() => clock.advanceBy(ms)),
  };
}

function realCourse(): Course {
  const clock = systemClock();
  const pass = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
  return {
    clock,
    quietMs: 60,
    sessionTimeoutMs: 300,
    settle: (promise) => promise,
    eventually: async (condition, what) => {
      const deadlineMs = clock.monotonicMs() + 20_000;
      while (!condition()) {
        if (clock.monotonicMs() > deadlineMs) throw new Error(`in 20 seconds, not: ${what}`);
        await pass(2);
      }
    },
    pass,
  };
}

messageBusConformance('memory, in virtual time', async () => memoryFactory(virtualCourse(), 3));
messageBusRestartConformance('memory, in virtual time', async () => memoryFactory(virtualCourse(), 3));
messageBusConformance('memory, in real time', async () => memoryFactory(realCourse(), 0));
messageBusRestartConformance('memory, in real time', async () => memoryFactory(realCourse(), 0));
