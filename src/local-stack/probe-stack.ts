import { portAnswers, urlAnswers } from './await-ready.ts';

// One that wants a password first answers as well.
const REDIS_PING = { ask: 'PING\r\n', answer: /^(\+PONG|-NOAUTH)/ };

export interface ServiceAnswer {
  service: 'kafka' | 'registry' | 'redis';
  address: string;
  answers: boolean;
}

/** Asks each loopback service that a stack's environment names whether it is there; one line for each broker. */
export async function probeStack(environment: Readonly<Record<string, string>>): Promise<ServiceAnswer[]> {
  const { MILLRACE_KAFKA_BROKERS = '', MILLRACE_REGISTRY_URL = '', MILLRACE_REDIS_URL = '' } = environment;
  const brokers = MILLRACE_KAFKA_BROKERS.split(',').filter((broker) => broker !== '');
  return Promise.all([
    ...brokers.map(async (address) => {
      return { service: 'kafka' as const, address, answers: await portAnswers(portOf(address)) };
    }),
    urlAnswers(`${MILLRACE_REGISTRY_URL}/subjects`).then((answers) => {
      return { service: 'registry' as const, address: MILLRACE_REGISTRY_URL, answers };
    }),
    portAnswers(portOf(MILLRACE_REDIS_URL), REDIS_PING).then((answers) => {
      return { service: 'redis' as const, address: MILLRACE_REDIS_URL, answers };
    }),
  ]);
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}
